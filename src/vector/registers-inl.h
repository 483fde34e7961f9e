// A vector held in its register. For inclusion by each target of a file of vector code, after Highway.
#if defined(OMNICONV_REGISTERS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_REGISTERS_INL_H
#undef OMNICONV_REGISTERS_INL_H
#else
#define OMNICONV_REGISTERS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {

// Keeps a value that is used several times in its register: else the compiler folds the load into every use, and loads,
// of which those across cache lines count twice, bind before the multiply-adds do. Highway's emulated vectors are
// arrays.
template <class V>
HWY_INLINE void keep_in_register([[maybe_unused]] V& value) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC && HWY_TARGET != HWY_EMU128
  asm("" : "+v"(value.raw));
#endif
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
