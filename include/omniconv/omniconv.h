// The whole of the public interface. Nothing of CUDA's or OpenCL's headers is needed.
#pragma once

#include "omniconv/activation.h"
#include "omniconv/context.h"
#include "omniconv/conv2d.h"
#include "omniconv/cuda.h"
#include "omniconv/error.h"
#include "omniconv/filter2d.h"
#include "omniconv/filter2d_host.h"
#include "omniconv/gemm.h"
#include "omniconv/kernels.h"
#include "omniconv/opencl.h"
#include "omniconv/plan.h"
#include "omniconv/pool2d.h"
#include "omniconv/problem.h"
#include "omniconv/solver_options.h"
#include "omniconv/types.h"
#include "omniconv/update.h"
