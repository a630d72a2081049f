#include "tests/cuda_stand_in/state.hpp"

#include <cstdio>
#include <cstring>
#include <utility>

namespace cuda_stand_in {
namespace {

/// What cuCtxGetCurrent gives.
int current_context(void** context) {
  static int something;
  *context = mine().used ? &something : nullptr;
  return 0;
}

}  // namespace
}  // namespace cuda_stand_in

using namespace cuda_stand_in;

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  *count = state().gpus;
  return *count > 0 ? cudaSuccess : failed(cudaErrorNoDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= state().gpus) return failed(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "stand-in %d", device);
  properties->totalGlobalMem = memory;
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->pciBusID = device + 1;
  properties->unifiedAddressing = properties->canMapHostMemory = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (device < 0 || device >= state().gpus) return failed(cudaErrorInvalidDevice);
  *value = attribute == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = mine().device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= state().gpus) return failed(cudaErrorInvalidDevice);
  mine().device = device;
  touch();
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  not_captured("waiting for a device");
  touch();
  finish_all();
  return outcome();
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  touch();
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = 0;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(mine().last, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return mine().last; }
const char* cudaGetErrorString(cudaError_t error) {
  if (error == cudaErrorIllegalAddress) return "an illegal address, on a stand-in";
  if (error == cudaErrorNoKernelImageForDevice) return "no image for the device, on a stand-in";
  return error == cudaSuccess ? "no error" : "an error of the stand-in's";
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** found, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *result = cudaDriverEntryPointSuccess;
  if (std::strcmp(name, "cuCtxGetCurrent") != 0) refuse(name);
  *found = reinterpret_cast<void*>(current_context);
  return cudaSuccess;
}

}  // extern "C"
