"""Route support requests to teams: an asyncio service with one worker."""
import asyncio
import os

import torch

from router import Service, customers

REQUESTS = int(os.environ.get("REQUESTS", "60000"))


async def run():
    torch.manual_seed(0)
    service = Service()
    service.warm_up()
    inbox = asyncio.Queue(maxsize=8)
    worker = asyncio.create_task(service.serve(inbox))
    await customers(inbox, REQUESTS)
    await inbox.join()
    worker.cancel()
    print("routed", service.routed, "tickets; busiest team", service.busiest())


if __name__ == "__main__":
    asyncio.run(run())
