# Two images from one file: `web` for everything that neither trains nor scores, `learning` for what does, on a GPU
# or without one. docker-compose.yml says which process runs where.

FROM python:3.11-slim AS web
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    VAR_DIR=/var/lib/rewardloop HOME=/var/lib/rewardloop HOST=0.0.0.0 PORT=8000
WORKDIR /srv/rewardloop
RUN useradd --system --uid 10001 --home-dir /var/lib/rewardloop --create-home rewardloop
COPY requirements requirements
RUN pip install --no-deps --require-hashes -r requirements/web.txt
COPY . .
RUN python -I annotator/launch/compiled_translations.py
USER rewardloop
EXPOSE 8000
CMD ["python", "-m", "annotator.launch.webserver"]

FROM web AS learning
# `torch-pypi` runs on a GPU and on a CPU. For a smaller image without the GPU's libraries:
#   --build-arg TORCH=torch-cpu --build-arg PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu
ARG TORCH=torch-pypi
ARG PIP_EXTRA_INDEX_URL
USER root
RUN pip install --no-deps --require-hashes -r requirements/learning.txt -r requirements/${TORCH}.txt
USER rewardloop
CMD ["celery", "-A", "annotator", "worker", "--loglevel", "INFO", "-Q", "train,score", "--pool", "solo"]
