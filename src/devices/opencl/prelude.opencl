// Words of the kernel text that OpenCL C and CUDA C write differently, in OpenCL C 1.2. `long` has 64 bits in both.
// Contraction is off: a fused a * b + c that was not asked for changes promised bits. FMA asks.
#pragma OPENCL FP_CONTRACT OFF

#define KERNEL __kernel
// A kernel for groups of so many work items, of which `resident` should fit on a compute unit by their registers.
// Where NVIDIA's compiler is told how many registers are to suffice, it listens if it does not know the group.
#if REGISTERS_ARE_LIMITED
#define KERNEL_OF(group, resident) __kernel
#else
#define KERNEL_OF(group, resident) __kernel __attribute__((reqd_work_group_size(group, 1, 1)))
#endif
#define GLOBAL __global
#define LOCAL __local
#define ALIGNED(bytes) __attribute__((aligned(bytes)))
#define LOCAL_MEMORY __local  // of what a pointer points to
#define CONSTANT __constant
#define RESTRICT restrict
// Where a function is not inlined, and is always given the same local array, the optimizer writes that array into it, and
// PoCL 3.1 then has one array for all its threads. Oclgrind crashes on functions that are always inlined.
#ifdef POCL_DEVICE_ADDRESS_BITS
#define DEVICE static inline __attribute__((always_inline))
#else
#define DEVICE static inline
#endif
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")

#define GLOBAL_ID_X ((long)get_global_id(0))
#define GLOBAL_ID_Y ((long)get_global_id(1))
#define GLOBAL_ID_Z ((long)get_global_id(2))
#define LOCAL_ID_X ((int)get_local_id(0))
#define LOCAL_ID_Y ((int)get_local_id(1))
#define LOCAL_ID_Z ((int)get_local_id(2))
#define GROUP_ID_X ((long)get_group_id(0))
#define GROUP_ID_Y ((long)get_group_id(1))
#define GROUP_ID_Z ((long)get_group_id(2))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
// A barrier where the condition holds, which it does for all work items of a group or for none; and REJOIN, where work
// items that took different branches come together: before a loop begins again with a barrier, and at the end of code
// with barriers that a group may leave out. PoCL takes all work items along the first one's branch where a barrier
// follows in it, so that such barriers are for all there.
#ifdef __NV_CL_C_VERSION
#define BARRIER_IF(condition) \
  if (condition) BARRIER
#define REJOIN
#else
#define BARRIER_IF(condition) BARRIER
#define REJOIN BARRIER
#endif

#define FMA(a, b, c) fma((a), (b), (c))
#define FABS(x) fabs(x)
#define EXP(x) exp(x)
#define LOG1P(x) log1p(x)
#define TANH(x) tanh(x)
#define ILOGB(x) ilogb(x)
#define LDEXP(x, exponent) ldexp((x), (exponent))
#define FLOAT_TO_BITS(value) as_int(value)
#define BITS_TO_FLOAT(bits) as_float(bits)
// Four words as one vector. By their elements only where that is known to be fastest: Oclgrind's compiler stores such a
// vector undefined first, and its interpreter reports that.
#ifdef __NV_CL_C_VERSION
#define UINT4(a, b, c, d) (uint4)((a), (b), (c), (d))
#else
#define UINT4(a, b, c, d) (uint4)(as_uint2((ulong)(b) << 32 | (a)), as_uint2((ulong)(d) << 32 | (c)))
#endif

#ifdef __NV_CL_C_VERSION
DEVICE float CORRECTLY_ROUNDED_ROOT(const float x) {
  float root;
  asm("sqrt.rn.f32 %0, %1;" : "=f"(root) : "f"(x));
  return root;
}
#define CORRECTLY_ROUNDED_ROOT CORRECTLY_ROUNDED_ROOT
#endif

// Asks for the line at an address, to be in the second cache when it is read.
#ifdef __NV_CL_C_VERSION
#define ASK_FOR_LINE(pointer) asm volatile("prefetch.global.L2 [%0];" ::"l"(pointer))
#else
#define ASK_FOR_LINE(pointer)
#endif

// See prelude.cuda.
#ifdef __NV_CL_C_VERSION
#define KEEP(word) asm volatile("" : "+r"(word))
#else
#define KEEP(word)
#endif

// Of launches that overlap, which there are none of here: see prelude.cuda.
#define AWAIT_LAUNCH_BEFORE
#define READ_BEHIND_WAIT(pointer)
#define BEGIN_LAUNCH_BEHIND

// See prelude.cuda.
#if NVIDIA_CAPABILITY >= 70
#define LOADS_FIRST asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
#else
#define LOADS_FIRST
#endif

// A number in global memory becomes so large, if it is less.
#define RAISE(at, value) atomic_max((at), (value))
// One becomes this if it is 0.
#define CLAIM(at, value) atomic_cmpxchg((at), 0, (value))

// IEEE binary16 in memory; fp32 in registers. Stores round to nearest even.
typedef half half_t;
#define LOAD_HALF(pointer, i) vload_half((i), (pointer))
#define STORE_HALF(value, pointer, i) vstore_half_rte((value), (i), (pointer))
DEVICE float HALF_BITS_TO_FLOAT(const ushort bits) { return vload_half(0, (const half*)&bits); }

// Byte k of the result is the one that digit k of the selector names: 0 to 3 of a, 4 to 7 of b.
DEVICE uint SELECT_BYTES(const uint a, const uint b, const uint selector) {
#ifdef __NV_CL_C_VERSION
  uint result;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(selector));
  return result;
#else
  const ulong bytes = (ulong)b << 32 | a;
  return (uint)(bytes >> 8 * (selector & 7) & 255) | (uint)(bytes >> 8 * (selector >> 4 & 7) & 255) << 8 |
         (uint)(bytes >> 8 * (selector >> 8 & 7) & 255) << 16 | (uint)(bytes >> 8 * (selector >> 12 & 7) & 255) << 24;
#endif
}

// The quotient rounded to nearest even, where that is an instruction.
#ifdef __NV_CL_C_VERSION
#define HAS_IEEE_DIVIDE 1
DEVICE float IEEE_DIVIDE(const float n, const float d) {
  float quotient;
  asm("div.rn.f32 %0, %1, %2;" : "=f"(quotient) : "f"(n), "f"(d));
  return quotient;
}
#else
#define HAS_IEEE_DIVIDE 0
#endif
// 1 / d, at most a unit in the last place off on NVIDIA's devices, else 2.5.
DEVICE float APPROXIMATE_RECIPROCAL(const float d) {
#ifdef __NV_CL_C_VERSION
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(d));
  return reciprocal;
#else
  return 1.0f / d;
#endif
}

// c + the products of four unsigned bytes of a and four signed bytes of b. NVIDIA_CAPABILITY is an option of NVIDIA's devices.
DEVICE int DOT_U8_S8(const uint a, const int b, const int c) {
#if NVIDIA_CAPABILITY >= 61
  int sum;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(b), "r"(c));
  return sum;
#else
  return c + (int)(a & 255) * (char)b + (int)(a >> 8 & 255) * (char)(b >> 8) + (int)(a >> 16 & 255) * (char)(b >> 16) +
         (int)(a >> 24) * (b >> 24);
#endif
}

// Round to nearest even and saturate; NaN becomes 0 (fmax takes the other operand).
DEVICE uchar to_u8(float value) { return (uchar)fmin(fmax(rint(value), 0.0f), 255.0f); }
DEVICE ushort to_u16(float value) { return (ushort)fmin(fmax(rint(value), 0.0f), 65535.0f); }
DEVICE short to_s16(float value) {
  return (short)(isnan(value) ? 0.0f : fmin(fmax(rint(value), -32768.0f), 32767.0f));
}
DEVICE int to_s32(float value) {
#ifdef __NV_CL_C_VERSION
  int result;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(result) : "f"(value));  // saturates, and NaN becomes 0
  return result;
#else
  // 2^31 - 1 is no fp32 value: compare with 2^31
  const float rounded = rint(value);
  const int inside = (int)(rounded >= -2147483648.0f && rounded < 2147483648.0f ? rounded : 0.0f);
  return rounded >= 2147483648.0f ? 2147483647 : rounded < -2147483648.0f ? -2147483647 - 1 : inside;
#endif
}

// Several at once, the first in the lowest bits.
DEVICE uint PACK_U8(const float a, const float b, const float c, const float d) {
#if NVIDIA_CAPABILITY >= 72
  uint high, all;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(high) : "r"(to_s32(d)), "r"(to_s32(c)));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(all) : "r"(to_s32(b)), "r"(to_s32(a)), "r"(high));
  return all;
#else
  return as_uint(convert_uchar4_sat_rte((float4)(a, b, c, d)));
#endif
}
DEVICE uint PACK_U16(const float a, const float b) {
#if NVIDIA_CAPABILITY >= 72
  uint both;
  asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(both) : "r"(to_s32(b)), "r"(to_s32(a)));
  return both;
#else
  return as_uint(convert_ushort2_sat_rte((float2)(a, b)));
#endif
}
// Two halves. By one instruction: of two and a move the compiler behind CUDA 13.0 has been seen to lose the result.
DEVICE uint PACK_F16(const float a, const float b) {
#if NVIDIA_CAPABILITY >= 80
  uint both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
  return both;
#else
  uint both;
  vstore_half2_rte((float2)(a, b), 0, (half*)&both);
  return both;
#endif
}

// Of two 16-bit floats each: all bits, where a's is greater than b's. Only where one instruction compares both.
#if NVIDIA_CAPABILITY >= 53
DEVICE uint GREATER_F16X2(const uint a, const uint b) {
  uint mask;
  asm("set.gt.u32.f16x2 %0, %1, %2;" : "=r"(mask) : "r"(a), "r"(b));
  return mask;
}
#define GREATER_F16X2 GREATER_F16X2
#endif
#if NVIDIA_CAPABILITY >= 90
DEVICE uint GREATER_BF16X2(const uint a, const uint b) {
  uint mask;
  asm("set.gt.u32.bf16x2 %0, %1, %2;" : "=r"(mask) : "r"(a), "r"(b));
  return mask;
}
#define GREATER_BF16X2 GREATER_BF16X2
#endif
