// The candidates, one line each, closed by the reference.
#include "operations/conv2d/conv2d.h"

namespace omniconv::operations {

std::span<const Solver* const> conv2d_solvers() {
  static const Solver* const solvers[] = {
      &conv2d_im2col_gemm_cpu(),          //
      &conv2d_im2col_gemm_gpu(),          //
      &conv2d_dense_cpu(),                //
      &conv2d_dense_gpu(),                //
      &conv2d_implicit_gemm_gpu(),        //
      &conv2d_split_gemm_gpu(),           //
      &conv2d_few_channels_gpu(),         //
      &conv2d_few_channels_filter_gpu(),  //
      &conv2d_few_channels_warps_gpu(),   //
      &conv2d_few_pixels_gpu(),           //
      &conv2d_mma_gemm_gpu(),             //
      &conv2d_depthwise_cpu(),            //
      &conv2d_depthwise_gpu(),            //
      &conv2d_blocked_tiles_cpu(),        //
      &conv2d_blocked_cpu(),              //
      &conv2d_shifted_tiles_cpu(),        //
      &conv2d_shifted_panels_cpu(),       //
      &conv2d_winograd_cpu(),             //
      &conv2d_winograd_gpu(),             //
      &conv2d_fft_cpu(),                  //
      &conv2d_fft_gpu(),                  //
      &conv2d_direct_cpu(),               //
      &conv2d_direct_gpu(),               //
      &conv2d_rungs_gpu(),                //
      &conv2d_reference(),                //
  };
  return solvers;
}

}  // namespace omniconv::operations
