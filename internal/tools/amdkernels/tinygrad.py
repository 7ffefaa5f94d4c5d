# Runs launches that amdkernels --export has written in tinygrad's emulator of RDNA, and compares what they leave with
# what ours left. It wants a folder of tinygrad (github.com/tinygrad/tinygrad, tried with a9069c17), Python 3.11 and
# clang:
#
#   go run ./internal/tools/amdkernels --shape qwen3-0.6b:1 --target gfx1201 --export DIR
#   python3 internal/tools/amdkernels/tinygrad.py TINYGRAD DIR
#
# A line for each launch: what came of it, and the largest difference relative to the largest number.
import ctypes, json, math, os, struct, sys, types
from pathlib import Path

tinygrad, launches = Path(sys.argv[1]).resolve(), sorted(Path(sys.argv[2]).glob("*.launch"))
os.environ.setdefault("DEV", "CPU")
sys.path.insert(0, str(tinygrad))
# Python's own package "test" would be found instead.
test = types.ModuleType("test")
test.__path__ = [str(tinygrad / "test")]
sys.modules["test"] = test
from test.mockgpu.amd import emu

TTMP7, TTMP8 = 115, 116
GUARD = 1 << 16  # bytes before and behind buffers, which kernels that load ahead may touch


class Buffer:
  def __init__(self, data):
    self.memory = ctypes.create_string_buffer(len(data) + 2 * GUARD + 4096)
    self.address = (ctypes.addressof(self.memory) + GUARD + 4095) & ~4095
    self.size = len(data)
    ctypes.memmove(self.address, data, len(data))

  def bytes(self): return ctypes.string_at(self.address, self.size)


def begin(launch, addresses):
  """makes waves begin as the Vulkan driver has them begin: user registers, and the number of the wave"""
  original = begin.original
  words = [a >> 32 * half & 0xffffffff for a in addresses for half in (0, 1)]

  def init(lib, wave_start, total, *rest):
    state = original(lib, wave_start, total, *rest)
    wave, waves = wave_start // 32, (total + 31) // 32
    for i, word in enumerate(launch["Inline"]):
      if word < len(words): state._write_sgpr(launch["InlineAt"] + i, words[word])
    at = launch["Rsrc2"] >> 1 & 31
    if launch["Gen"] == "gfx11": at += sum(launch["Rsrc2"] >> 7 + i & 1 for i in range(3))
    else: state._write_sgpr(TTMP8, wave << 25)
    if launch["Rsrc2"] >> 10 & 1: state._write_sgpr(at, waves | (wave << 20 if launch["Gen"] == "gfx11" else 0))
    return state
  return init

begin.original = emu._init_wave


def distance(want, got):
  """of numbers of 32 bits, or of 16 if those of 32 are none"""
  for code, size in (("f", 4), ("e", 2)):
    n = len(want) // size
    a, b = struct.unpack(f"<{n}{code}", want[:n * size]), struct.unpack(f"<{n}{code}", got[:n * size])
    changed = [(x, y) for x, y in zip(a, b) if x != y and not (math.isnan(x) and math.isnan(y))]
    if all(math.isfinite(v) for pair in changed for v in pair):
      return max((abs(x - y) for x, y in changed), default=0) / max((abs(x) for x in a if math.isfinite(x)), default=1)
  return math.inf


agree, differ, cannot = 0, 0, 0
for path in launches:
  with open(path, "rb") as f:
    launch = json.loads(f.readline())
    buffers = [Buffer(f.read(b["Bytes"])) for b in launch["Buffers"]]
    want = [f.read(b["Bytes"]) if b["Writable"] else None for b in launch["Buffers"]]
  code = Buffer(struct.pack(f"<{len(launch['Code'])}I", *launch["Code"]))
  emu._init_wave = begin(launch, [buffers[i].address for i in launch["Args"]])
  rsrc2 = launch["Rsrc2"] & ~(0x1ff << 15) | (launch["LDS"] + 511) // 512 << 15
  try:
    emu.run_asm(code.address, code.size, *launch["Grid"], launch["Workgroup"], 1, 1, 0, rsrc2, 0, "rdna4" if launch["Gen"] == "gfx12" else "rdna3", None)
  except Exception as e:
    cannot += 1
    print(f"cannot\t{type(e).__name__}: {str(e)[:80]}\t{launch['Gen']} {launch['Kernel']}", flush=True)
    continue
  worst = max((distance(w, b.bytes()) for w, b in zip(want, buffers) if w is not None and w != b.bytes()), default=0)
  if worst <= 1e-5: agree += 1
  else: differ += 1
  print(f"{'bits' if worst == 0 else 'agrees' if worst <= 1e-5 else 'DIFFERS'}\t{worst:.1g}\t{launch['Gen']} {launch['Kernel']}", flush=True)
print(f"{agree} agree, {differ} differ, it cannot run {cannot}")
sys.exit(1 if differ else 0)
