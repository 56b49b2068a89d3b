"""train.py [TRACE]: trains a small transformer on the CPU and profiles five training steps with Marey.

The model learns to predict the next character of this file. The program prints a table of the operators that took the
most time and writes a timeline for https://ui.perfetto.dev to TRACE (default: train.pftrace).
"""

import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from marey.torch import profile, record_function, schedule

WIDTH, HEADS, CONTEXT, BATCH = 128, 4, 64, 16


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def attention(self, x):
        q, k, v = self.qkv(x).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))

    def feed_forward(self, x):
        return self.down(F.gelu(self.up(x)))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Transformer(nn.Module):
    def __init__(self, symbols):
        super().__init__()
        self.symbol, self.position = nn.Embedding(symbols, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.block, self.head = Block(), nn.Linear(WIDTH, symbols)

    def forward(self, text):
        return self.head(self.block(self.symbol(text) + self.position.weight))


def main(trace_path):
    torch.manual_seed(0)
    text = torch.tensor(list(Path(__file__).read_bytes()))
    model = Transformer(symbols=128)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    # Skip one step, warm up for one, then record five: operators, memory, and Python calls outside of libraries.
    steps = schedule(wait=1, warmup=1, active=5, repeat=1)
    with profile(schedule=steps, profile_memory=True, with_stack=True, fold_libraries=True) as prof:
        for step in range(7):
            with record_function("load batch"):
                starts = torch.randint(len(text) - CONTEXT - 1, (BATCH,))
                batch = torch.stack([text[i : i + CONTEXT + 1] for i in starts.tolist()])
            with record_function("forward"):
                logits = model(batch[:, :-1])
                loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            with record_function("backward"):
                loss.backward()
            with record_function("optimizer"):
                optimizer.step()
                optimizer.zero_grad()
            print(f"step {step}: loss {loss.item():.3f}")
            prof.step()

    print(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=8, max_name_column_width=32))
    prof.export(trace_path)
    print(f"wrote {trace_path}: open it at https://ui.perfetto.dev")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "train.pftrace")
