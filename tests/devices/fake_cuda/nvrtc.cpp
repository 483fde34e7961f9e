// A compiler that knows one device and makes nothing of any text, so that the fake driver's devices are found and get
// programs.
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
int nvrtcCreateProgram(void* program, const char*, const char*, int, const char* const*, const char* const*) {
  *static_cast<void**>(program) = nullptr;
  return 0;
}
int nvrtcDestroyProgram(void*) {
  return 0;
}
int nvrtcCompileProgram(void*, int, const char* const*) {
  return 0;
}
int nvrtcGetPTXSize(void*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvrtcGetPTX(void*, char* text) {
  *text = '\0';
  return 0;
}
int nvrtcGetCUBINSize(void*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvrtcGetCUBIN(void*, char* code) {
  *code = '\0';
  return 0;
}
int nvrtcGetProgramLogSize(void*, std::size_t* size) {
  *size = 1;
  return 0;
}
int nvrtcGetProgramLog(void*, char* text) {
  *text = '\0';
  return 0;
}

}  // extern "C"
