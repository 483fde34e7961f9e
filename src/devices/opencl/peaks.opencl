// What the device can do at most: fused multiply-adds in registers, and a copy.

#ifndef VECTOR
#define VECTOR 4  // fp32 lanes of one native vector: 1, 2, 4, 8 or 16
#endif
#ifndef CHAINS
#define CHAINS 8  // independent chains per work item, 1 to 16: they hide the latency of one
#endif

#if VECTOR == 1
typedef float vector_t;
#elif VECTOR == 2
typedef float2 vector_t;
#elif VECTOR == 4
typedef float4 vector_t;
#elif VECTOR == 8
typedef float8 vector_t;
#else
typedef float16 vector_t;
#endif

// VECTOR * CHAINS * rounds multiply-adds per work item. The result depends on every one, and stays near a fixed point.
KERNEL void multiply_add(GLOBAL vector_t* RESTRICT result, const float factor, const float offset, const long rounds) {
  vector_t chain[CHAINS];
  UNROLL
  for (int i = 0; i < CHAINS; ++i) chain[i] = (vector_t)((float)(LOCAL_ID_X + i));
  const vector_t a = (vector_t)(factor), b = (vector_t)(offset);
  for (long round = 0; round < rounds; ++round) {
    UNROLL
    for (int i = 0; i < CHAINS; ++i) chain[i] = FMA(chain[i], a, b);
  }
  vector_t sum = (vector_t)(0.0f);
  UNROLL
  for (int i = 0; i < CHAINS; ++i) sum += chain[i];
  result[GLOBAL_ID_X] = sum;
}

KERNEL void copy(GLOBAL float4* RESTRICT to, GLOBAL const float4* RESTRICT from) { to[GLOBAL_ID_X] = from[GLOBAL_ID_X]; }
