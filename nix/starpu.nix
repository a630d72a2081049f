# StarPU as scripts/build-starpu configures it, and with FxT. nixpkgs has none: its pull request 384975 is open.
{
  lib,
  stdenv,
  fetchurl,
  pkg-config,
  hwloc,
  fxt,
  cudaSupport ? false,
  cudaPackages_13,
}:
let
  builder = if cudaSupport then cudaPackages_13.backendStdenv else stdenv;

  cudaLibraries = lib.optionals cudaSupport [
    cudaPackages_13.cuda_cccl
    cudaPackages_13.cuda_crt
    cudaPackages_13.cuda_cudart
    cudaPackages_13.libcublas
    cudaPackages_13.libcusolver
    cudaPackages_13.libcusparse
  ];
in
builder.mkDerivation (finalAttrs: {
  pname = "starpu${lib.optionalString cudaSupport "-cuda"}";
  version = "1.4.7";

  # Published in that pull request, and in hexadecimal in a Homebrew formula for StarPU.
  src = fetchurl {
    url = "https://files.inria.fr/starpu/starpu-${finalAttrs.version}/starpu-${finalAttrs.version}.tar.gz";
    hash = "sha256-HrPfVRCJFT/m4LFyrZURhDS0qB6p6qWiw4cl0NtTsT4=";
  };

  # CUDA 13 has no cudaDeviceProp::computeMode any more; asking the device works with every CUDA. To measure
  # the bus it would make a context on every GPU there is, also for sessions on the CPU, end the process where one is full,
  # and reset them all: 10 GB/s and 10 us do.
  postPatch = ''
    patchShebangs .
  ''
  + lib.optionalString cudaSupport ''
    for driver in src/drivers/cuda/driver_cuda{,1}.c; do
      substituteInPlace "$driver" --replace-fail \
        'if (props[devid].computeMode == cudaComputeModeExclusive)' \
        'int compute_mode = 0;
    	cures = cudaDeviceGetAttribute(&compute_mode, cudaDevAttrComputeMode, devid);
    	if (STARPU_UNLIKELY(cures))
    		STARPU_CUDA_REPORT_ERROR(cures);
    	if (compute_mode == cudaComputeModeExclusive)'
    done
    substituteInPlace src/core/perfmodel/perfmodel_bus.c --replace-fail \
      'with_cuda(int dev, unsigned numa, int cpu, struct dev_timing *dev_timing_per_cpu)
    {' \
      'with_cuda(int dev, unsigned numa, int cpu, struct dev_timing *dev_timing_per_cpu)
    {
    	dev_timing_per_cpu->timing_htod = dev_timing_per_cpu->timing_dtoh = 1e-4; dev_timing_per_cpu->latency_htod = dev_timing_per_cpu->latency_dtoh = 10;
    	return;'
    substituteInPlace src/core/perfmodel/perfmodel_bus.c --replace-fail \
      'between_dev_and_dev_cuda(int src, int dst, double *timingr, double *latencyr)
    {' \
      'between_dev_and_dev_cuda(int src, int dst, double *timingr, double *latencyr)
    {
    	*timingr = 1e-4; *latencyr = 10;
    	return;'
  '';

  strictDeps = true;
  nativeBuildInputs = [ pkg-config ] ++ lib.optional cudaSupport cudaPackages_13.cuda_nvcc;
  buildInputs = [ fxt ];
  # Its headers and starpu-1.4.pc name them.
  propagatedBuildInputs = [ hwloc ] ++ cudaLibraries;

  configureFlags = [
    "--with-fxt=${fxt}"
    (if cudaSupport then "--enable-cuda" else "--disable-cuda")
    "--enable-maxbuffers=16"
    "--enable-maxcpus=64"
    "--enable-maxcudadev=16"
    "--disable-static"
    "--disable-build-doc"
    "--disable-build-doc-pdf"
    "--disable-build-examples"
    "--disable-build-tests"
    "--disable-fortran"
    "--disable-starpupy"
    "--disable-socl"
    "--disable-starpufft"
    "--disable-starpurm"
    "--disable-mpi"
    "--disable-opencl"
    "--disable-hip"
    "--disable-openmp"
    "--disable-openmp-llvm"
    "--disable-bubble"
    "--disable-mlr"
  ];

  env.NIX_CFLAGS_COMPILE = "-Wno-deprecated-declarations";

  enableParallelBuilding = true;

  meta = {
    description = "Runtime of tasks for machines with cores and accelerators";
    homepage = "https://starpu.gitlabpages.inria.fr/";
    license = lib.licenses.lgpl21Plus;
    platforms = lib.platforms.linux;
  };
})
