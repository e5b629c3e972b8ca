//===- Wire.h - Bytes of small messages -------------------------*- C++ -*-===//
#ifndef NCCLXRT_LIB_WIRE_H
#define NCCLXRT_LIB_WIRE_H

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace ncclxrt {

/// Appends plain values and strings. All machines of a job are little-endian.
class Writer {
public:
  template <typename T> Writer &put(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
    return *this;
  }
  Writer &put(std::string_view text) {
    put(uint32_t(text.size()));
    bytes.append(text);
    return *this;
  }
  std::string take() { return std::move(bytes); }

private:
  std::string bytes;
};

/// Reads what Writer wrote; a message that is too short turns `good` off and reads as zeros.
class Reader {
public:
  explicit Reader(std::string_view bytes) : rest(bytes) {}
  template <typename T> T get() {
    T value{};
    if (rest.size() < sizeof(T)) {
      good = false;
      rest = {};
      return value;
    }
    std::memcpy(&value, rest.data(), sizeof(T));
    rest.remove_prefix(sizeof(T));
    return value;
  }
  std::string text() {
    uint32_t size = get<uint32_t>();
    if (size > rest.size()) {
      good = false;
      rest = {};
      return {};
    }
    std::string value(rest.substr(0, size));
    rest.remove_prefix(size);
    return value;
  }
  bool ok() const { return good; }

private:
  std::string_view rest;
  bool good = true;
};

} // namespace ncclxrt

#endif // NCCLXRT_LIB_WIRE_H
