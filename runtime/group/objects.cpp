#include "runtime/group/objects.hpp"

#include "tensorplay/distributed/errors.hpp"

#include <cstring>

namespace tensorplay {
namespace {

constexpr const char* kMark = "tensorplay.Tensor";

[[noreturn]] void refuse_tensor(const std::string& why) {
  throw distributed::DistBackendError("an object that is said to be a tensor: " + why);
}

}  // namespace

void to_json(nlohmann::json& object, const Tensor& tensor) {
  if (!tensor.defined()) {
    object = {{kMark, nullptr}};
    return;
  }
  const Tensor flat = tensor.contiguous();
  const auto* bytes = static_cast<const std::uint8_t*>(flat.data());
  object = {{kMark,
             {{"dtype", to_string(tensor.dtype())},
              {"shape", tensor.shape()},
              {"data", nlohmann::json::binary(std::vector<std::uint8_t>(bytes, bytes + flat.nbytes()))}}}};
}

void from_json(const nlohmann::json& object, Tensor& tensor) {
  if (!object.is_object() || !object.contains(kMark)) refuse_tensor("it has no \"" + std::string(kMark) + "\"");
  const auto& facts = object.at(kMark);
  if (facts.is_null()) {
    tensor = Tensor();
    return;
  }
  try {
    const auto& data = facts.at("data").get_binary();
    const auto dtype = parse_dtype(facts.at("dtype").get<std::string>());
    const auto shape = facts.at("shape").get<Shape>();
    // Measured before memory is taken: a shape cannot ask for more than its bytes.
    const auto probe = Tensor::from_pointer(reinterpret_cast<void*>(1), dtype, shape);
    if (probe.nbytes() != data.size()) {
      refuse_tensor("shape " + to_string(shape) + " of " + std::string(to_string(dtype)) + " in " +
                    std::to_string(data.size()) + " bytes");
    }
    tensor = empty(shape, dtype);
    if (!data.empty()) std::memcpy(tensor.data(), data.data(), data.size());
  } catch (const nlohmann::json::exception& error) {
    refuse_tensor(error.what());
  } catch (const distributed::InvalidArgument& error) {
    refuse_tensor(error.what());
  }
}

namespace distributed {
namespace {

constexpr int kMostLevels = 1000;

/// Walks the bytes without keeping anything and stops where they are nested too deep: the parser recurses.
class DepthCheck final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return ++depth_ <= kMostLevels; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return ++depth_ <= kMostLevels; }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    reason_ = error.what();
    return false;
  }
  std::string reason() const { return reason_.empty() ? "nested too deep" : reason_; }

 private:
  bool leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::string reason_;
};

}  // namespace

std::vector<std::uint8_t> pack_object(const Object& object) {
  return Object::to_msgpack(object);
}

Object unpack_object(const std::uint8_t* bytes, std::size_t size, const std::string& what) {
  DepthCheck check;
  if (!Object::sax_parse(bytes, bytes + size, &check, Object::input_format_t::msgpack)) {
    throw DistBackendError(what + ": what arrived is no object: " + check.reason());
  }
  return Object::from_msgpack(bytes, bytes + size);
}

void detail::throw_not_convertible(const char* call, const std::string& reason) {
  throw DistBackendError(std::string(call) + ": an object of another type arrived: " + reason);
}

}  // namespace distributed
}  // namespace tensorplay
