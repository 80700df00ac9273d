"""The annotators of benchmarks/load.py in other products: `python -m benchmarks.peers.load label-studio|potato`.

They ask for a task, rate both of its responses by five attributes, submit, and ask for the next task in a call of its
own: neither product gives it with the answer to a submission.
"""

import asyncio
import json
import re
import sys
import time
from typing import Any

from benchmarks.load import ATTRIBUTES, PAUSE_SECONDS, Annotator, main, near

_ITEM = re.compile(rb'id="instance_id"[^>]*value="([^"]*)"')
"""Where a page of Potato names the item that it shows."""


class InLabelStudio(Annotator):
    """Connects for each call, as uWSGI's own HTTP server ends every connection after its answer."""

    async def exchange(self, name: str, method: str, path: str, body: str = "") -> bytes | None:
        if self.connection:
            self.connection.answer.cancel()
            self.connection.transport.close()
            self.connection = None
        return await super().exchange(name, method, path, body)

    async def work(self, until: float) -> None:
        while time.perf_counter() < until:
            task = await self.call("next", "GET", f"/api/projects/{self.plan.project}/next")
            if task is None:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            path = f"/api/tasks/{task['id']}/annotations/?project={self.plan.project}"
            body = json.dumps({"result": self._results(task["id"] % 5), "lead_time": 30.0})
            answer = await self.call("submit", "POST", path, body)
            self.tally.stored += answer is not None

    def _results(self, level: int) -> list[dict[str, Any]]:
        return [
            {
                "from_name": f"{key}_{number}",
                "to_name": f"response_{number}",
                "type": "rating",
                "value": {"rating": near(level, self.dice) + 1},
            }
            for number in (1, 2)
            for key in ATTRIBUTES
        ]


class InPotato(Annotator):
    """Goes on as the page's script does, without loading the page a second time after each step."""

    def identity(self, token: str) -> str:
        return f"Cookie: session={token}"

    async def work(self, until: float) -> None:
        item = await self._shown("GET", "/annotate")
        while time.perf_counter() < until:
            if item is None:
                self.tally.empty += 1
                await asyncio.sleep(PAUSE_SECONDS)
                item = await self._shown("GET", "/annotate")
                continue
            marks = {f"{key}_{number}:{near(2, self.dice) + 1}": "on" for number in (1, 2) for key in ATTRIBUTES}
            body = json.dumps({"instance_id": item, "annotations": marks, "span_annotations": []})
            answer = await self.call("submit", "POST", "/updateinstance", body)
            self.tally.stored += bool(answer and answer.get("status") == "success")
            step = json.dumps({"action": "next_instance", "instance_id": item})
            item = await self._shown("POST", "/annotate", step)

    async def _shown(self, method: str, path: str, body: str = "") -> str | None:
        page = await self.exchange("next", method, path, body)
        found = _ITEM.search(page or b"")
        return found.group(1).decode() if found else None


PEERS: dict[str, type[Annotator]] = {"label-studio": InLabelStudio, "potato": InPotato}


if __name__ == "__main__":
    main(PEERS[sys.argv[1]])
