"""Two torch TCPStore servers that live until stdin ends. Prints their ports: libuv's, then the older kind's."""
import sys
from datetime import timedelta

from torch.distributed import TCPStore

stores = [TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=30), wait_for_workers=False, use_libuv=libuv)
          for libuv in (True, False)]
print(*(store.port for store in stores), flush=True)
sys.stdin.read()
