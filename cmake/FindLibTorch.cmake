# libtorch for C++: the one inside PyPI's torch (TP_LIBTORCH_DIR, or the Python that TP_TORCH_PYTHON in the environment
# names), or Debian's libtorch-dev. Torch's own TorchConfig.cmake insists on a CUDA toolkit when torch has CUDA, which
# is not needed here. Defines LibTorch_FOUND and the target LibTorch::torch.
#
# Torch brings a Gloo of its own, whose symbols have the names of the system's; the system's has to come first, or this
# library's gloo backend would call into torch's.
if(NOT TP_LIBTORCH_DIR AND DEFINED ENV{TP_TORCH_PYTHON})
  get_filename_component(_prefix "$ENV{TP_TORCH_PYTHON}" DIRECTORY)
  file(GLOB _found "${_prefix}/../lib/python3*/site-packages/torch")
  if(_found)
    list(GET _found 0 _found)
    get_filename_component(_found "${_found}" REALPATH)
    set(TP_LIBTORCH_DIR "${_found}" CACHE PATH "Folder with libtorch's include and lib")
  endif()
endif()
find_path(LibTorch_INCLUDE_DIR torch/csrc/autograd/engine.h HINTS ${TP_LIBTORCH_DIR}/include)
find_library(LibTorch_CPU_LIBRARY torch_cpu HINTS ${TP_LIBTORCH_DIR}/lib)
find_library(LibTorch_C10_LIBRARY c10 HINTS ${TP_LIBTORCH_DIR}/lib)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch REQUIRED_VARS LibTorch_CPU_LIBRARY LibTorch_C10_LIBRARY LibTorch_INCLUDE_DIR)
if(LibTorch_FOUND AND NOT TARGET LibTorch::torch)
  add_library(LibTorch::torch INTERFACE IMPORTED)
  target_include_directories(LibTorch::torch SYSTEM INTERFACE
    ${LibTorch_INCLUDE_DIR} ${LibTorch_INCLUDE_DIR}/torch/csrc/api/include)
  target_link_libraries(LibTorch::torch INTERFACE ${LibTorch_CPU_LIBRARY} ${LibTorch_C10_LIBRARY})
endif()
