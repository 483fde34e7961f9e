// A compiler that knows one device and compiles nothing, so that the fake driver's devices are found.
#include <cstddef>

extern "C" {

const char* nvrtcGetErrorString(int) {
  return "the fake compiles nothing";
}
int nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return 0;
}
int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return 0;
}
int nvrtcGetSupportedArchs(int* capabilities) {
  capabilities[0] = 90;
  return 0;
}
int nvrtcCreateProgram(void*, const char*, const char*, int, const char* const*, const char* const*) {
  return 1;
}
int nvrtcDestroyProgram(void*) {
  return 1;
}
int nvrtcCompileProgram(void*, int, const char* const*) {
  return 1;
}
int nvrtcGetPTXSize(void*, std::size_t*) {
  return 1;
}
int nvrtcGetPTX(void*, char*) {
  return 1;
}
int nvrtcGetCUBINSize(void*, std::size_t*) {
  return 1;
}
int nvrtcGetCUBIN(void*, char*) {
  return 1;
}
int nvrtcGetProgramLogSize(void*, std::size_t*) {
  return 1;
}
int nvrtcGetProgramLog(void*, char*) {
  return 1;
}

}  // extern "C"
