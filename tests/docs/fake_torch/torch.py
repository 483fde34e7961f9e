"""Stands for PyTorch where there is neither PyTorch nor a GPU: what scripts/pytorch_times.py calls of it. It computes nothing, and looks at shapes."""
import math
import time
import types

__version__ = "0.0"
float16, bfloat16, float32 = "f16", "bf16", "f32"
channels_last, contiguous_format = "nhwc", "nchw"


class Array:
    def __init__(self, shape):
        self.shape = tuple(shape)

    def to(self, _):
        return self

    def contiguous(self, memory_format):
        assert memory_format in (channels_last, contiguous_format) and len(self.shape) == 4
        return self

    def transpose(self, first, second):
        assert (first, second) == (-1, -2)
        return Array((*self.shape[:-2], self.shape[-1], self.shape[-2]))

    def numel(self):
        return math.prod(self.shape)

    def element_size(self):
        return 4


class Event:
    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.time = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return 1e3 * (end.time - self.time)


def randn(shape, device):
    assert device == "cuda"
    return Array(shape)


def conv2d(x, w, bias, stride, padding, dilation, groups):
    assert bias is None and x.shape[1] == w.shape[1] * groups and len(stride) == len(padding) == len(dilation) == 2
    if groups == 2:
        raise RuntimeError("no groups of two\nand so on")
    time.sleep(1e-4)


def convolution_backward(y, x, w, bias, stride, padding, dilation, transposed, output_padding, groups, mask):
    assert not transposed and output_padding == [0, 0] and sum(mask) == 1 and y.shape[:2] == (x.shape[0], w.shape[0])
    for of_y, of_x, of_w, axis in zip(y.shape[2:], x.shape[2:], w.shape[2:], (0, 1)):
        assert of_y == (of_x + 2 * padding[axis] - dilation[axis] * (of_w - 1) - 1) // stride[axis] + 1
    conv2d(x, w, bias, stride, padding, dilation, groups)


def matmul(a, b):
    assert a.shape[-1] == b.shape[-2]
    time.sleep(1e-4)


def nothing(*_):
    pass


backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 90000), cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()))
cuda = types.SimpleNamespace(Event=Event, _sleep=nothing, synchronize=nothing, empty_cache=nothing)
nn = types.SimpleNamespace(functional=types.SimpleNamespace(conv2d=conv2d))
ops = types.SimpleNamespace(aten=types.SimpleNamespace(convolution_backward=convolution_backward))
