# What cudaPackages_13 holds, by files in pkgs/development/cuda-modules/packages of nixpkgs. That 25.11 has it, pull
# requests 387 and 412 of anduril/jetpack-nixos say.
[
  "cuda_cccl"
  "cuda_crt"
  "cuda_cudart"
  "cuda_nvrtc"
  "cuda_cuobjdump"
  "cuda_cupti"
  "cuda_gdb"
  "cuda_nvcc"
  "cuda_nvdisasm"
  "cuda_sanitizer_api"
  "cudnn"
  "libcublas"
  "libcusolver"
  "libcusparse"
  "nsight_compute"
  "nsight_systems"
]
