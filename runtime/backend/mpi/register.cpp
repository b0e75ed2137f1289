/// Makes "mpi" known when this shared object is loaded.
#include "runtime/backend/mpi/mpi_backend.hpp"
#include "runtime/backend/mpi/mpi_session.hpp"

#include <memory>
#include <utility>

namespace tensorplay::distributed {
namespace {

[[maybe_unused]] const bool g_is_registered = [] {
  BackendTraits traits;
  traits.devices = {DeviceType::kCPU};
  traits.operations = all_op_types();
  traits.operations.erase(OpType::MONITORED_BARRIER);  // MPI does not tell who is late.
  traits.meet = mpi::meet;
  Backend::register_backend(
      "mpi", [](const BackendOptions& options) { return std::make_shared<MpiBackend>(options); }, std::move(traits));
  return true;
}();

}  // namespace
}  // namespace tensorplay::distributed
