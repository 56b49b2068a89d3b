"""Programs in which a framework makes torch.profiler.profile and calls it: each trains or runs the MLP on the CPU.

Frameworks are imported only here, after marey.torch.patch(). Each function returns the events, the file of the exported
trace, and the table that the framework wrote or that the program prints.
"""

import glob
import importlib.util
import json
import os

import torch
from torch import nn
from workloads import Batches, mlp

STEPS = 6  # Lightning's own schedule: one step is left out, one is warm-up, three are recorded
SCHEDULE = {"wait": 1, "warmup": 1, "active": 3, "repeat": 1}
ROWS = {"sort_by": "cpu_time_total", "row_limit": -1}


def _loader(shape):
    return torch.utils.data.DataLoader(Batches(shape, 2 * STEPS), batch_size=2)


def _only(pattern):
    (path,) = glob.glob(pattern)
    return path


def _lightning(options, folder):
    """PyTorchProfiler with the schedule, the handler and the table that it has by itself."""
    import pytorch_lightning as lightning
    from pytorch_lightning.profilers import PyTorchProfiler

    model, shape = mlp()

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, _index):
            return self.model(batch).pow(2).mean()

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

    profiler = PyTorchProfiler(dirpath=folder, filename="summary", row_limit=-1, **options)
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", devices=1, profiler=profiler, **dict.fromkeys(quiet, False)
    )
    trainer.fit(Module(), _loader(shape))
    with open(_only(f"{folder}/*summary*.txt")) as file:
        return profiler.function_events, _only(f"{folder}/*.pt.trace.json"), file.read()


def _accelerate(options, folder):
    """Accelerator.profile() with ProfileKwargs, which has no experimental_config."""
    from accelerate import Accelerator
    from accelerate.utils import ProfileKwargs

    options = {key: value for key, value in options.items() if key != "experimental_config"}
    kwargs = ProfileKwargs(activities=["cpu"], schedule_option=SCHEDULE, output_trace_dir=folder, **options)
    accelerator = Accelerator(cpu=True, kwargs_handlers=[kwargs])
    model, shape = mlp()
    model, optimizer, loader = accelerator.prepare(model, torch.optim.Adam(model.parameters()), _loader(shape))
    with accelerator.profile() as prof:
        for batch in loader:
            optimizer.zero_grad()
            accelerator.backward(model(batch).pow(2).mean())
            optimizer.step()
            prof.step()
    return prof.events(), _only(f"{folder}/*.json"), prof.key_averages().table(**ROWS)


def _trainer(options, folder):
    """Hugging Face's Trainer, with the callback that its users write: it calls step() after each training step."""
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.shape = mlp()

        def forward(self, inputs):
            return {"loss": self.layers(inputs).pow(2).mean()}

    class Profile(TrainerCallback):
        def on_step_end(self, *_arguments, **_state):
            prof.step()

    model = Model()
    quiet = {"report_to": [], "disable_tqdm": True, "save_strategy": "no", "logging_strategy": "no"}
    arguments = TrainingArguments(folder, max_steps=STEPS, use_cpu=True, **quiet)
    rows = [{"inputs": item} for item in Batches(model.shape, 8 * STEPS)]
    trainer = Trainer(model, arguments, train_dataset=rows, callbacks=[Profile()])
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(**SCHEDULE),
        on_trace_ready=torch.profiler.tensorboard_trace_handler(folder),
        **options,
    ) as prof:
        trainer.train()
    return prof.events(), _only(f"{folder}/*.pt.trace.json"), prof.key_averages().table(**ROWS)


def _vllm(options, folder):
    """The calls of vLLM's worker for start_profile and stop_profile, twice with one profiler; vLLM needs a GPU."""
    prof = torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=None,
        on_trace_ready=torch.profiler.tensorboard_trace_handler(folder, worker_name="rank0", use_gzip=True),
        **options,
    )
    model, shape = mlp()
    tables = []
    for number in range(2):
        prof.start()
        if prof.profiler is None:  # where vLLM waits with its metadata
            raise SystemExit("profile.profiler is None after start()")
        prof.add_metadata_json("vllm_version", json.dumps("0.0.0"))
        for length in range(1, STEPS):
            with torch.profiler.record_function(f"execute_{number}_context_0(0)_generation_1({length})"):
                with torch.inference_mode():
                    model(torch.ones(length, *shape[1:]))
        prof.stop()
        tables.append(prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=50))
    paths = sorted(glob.glob(f"{folder}/rank0.*.pt.trace.json.gz"), key=os.path.getmtime)
    if len(paths) != 2:
        raise SystemExit(f"expected two traces, found {paths}")
    return prof.events(), paths[-1], "\n".join(tables)


# Name: the function and the package that it needs.
FRAMEWORKS = {
    "Lightning": (_lightning, "pytorch_lightning"),
    "accelerate": (_accelerate, "accelerate"),
    "HF Trainer": (_trainer, "transformers"),
    "vLLM's calls": (_vllm, "torch"),
}


def is_installed(name):
    return importlib.util.find_spec(FRAMEWORKS[name][1]) is not None


def run(name, options, folder):
    """Run the program with these options of torch.profiler.profile, in an empty folder."""
    torch.manual_seed(0)
    return FRAMEWORKS[name][0](options, folder)
