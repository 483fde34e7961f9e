// A vector held in its register. For inclusion by each target of a file of vector code, after Highway.
#if defined(OMNICONV_REGISTERS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef OMNICONV_REGISTERS_INL_H
#undef OMNICONV_REGISTERS_INL_H
#else
#define OMNICONV_REGISTERS_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace omniconv::kernels::HWY_NAMESPACE {

// A value that is used several times, in a register of its own: else the compiler folds the load into every use, and
// loads, of which those across cache lines count twice, bind before the multiply-adds do. By value: an element of an
// array that the statement changed in place would be stored too. Highway's emulated vectors are arrays.
template <class V>
HWY_INLINE V in_register(V value) {
#if HWY_ARCH_X86 && HWY_COMPILER_GCC && HWY_TARGET != HWY_EMU128
  asm("" : "+v"(value.raw));
#endif
  return value;
}

}  // namespace omniconv::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
