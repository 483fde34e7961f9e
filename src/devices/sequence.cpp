#include "devices/sequence.h"

#include <cstring>

#include "devices/cpu/cpu_device.h"
#include "devices/device.h"
#include "omniconv/error.h"

namespace omniconv::devices {

void Sequence::launch(const std::shared_ptr<Program>& program, const char* kernel, const Grid& grid,
                      std::span<const KernelArgument> arguments) {
  Launch step{program, kernel, grid, arguments_.size(), arguments.size()};
  const auto add_bytes = [&](const void* data, std::size_t bytes) {
    const std::size_t at = (bytes_.size() + 7) / 8 * 8;
    bytes_.resize(at + bytes);
    std::memcpy(bytes_.data() + at, data, bytes);
    arguments_.push_back({at, bytes});
  };
  for (const KernelArgument& argument : arguments)
    std::visit(
        [&]<typename Value>(const Value& value) {
          if constexpr (std::is_same_v<Value, const Buffer*>) {
            if (value == nullptr) throw bad_input("launch: a buffer is missing");
            arguments_.push_back({value->shared_from_this(), sizeof value});
          } else if constexpr (std::is_same_v<Value, Scalar>) {
            arguments_.push_back({value, sizeof(float)});
          } else if constexpr (requires { value.size_bytes(); }) {
            add_bytes(value.data(), value.size_bytes());
          } else {
            add_bytes(&value, sizeof value);
          }
        },
        argument);
  steps_.emplace_back(std::move(step));
}

void Sequence::clear() {
  steps_.clear();
  arguments_.clear();
  bytes_.clear();
}

std::shared_ptr<Sequence> Queue::take_sequence() {
  const std::lock_guard lock(sequences_mutex_);
  for (std::shared_ptr<Sequence>& sequence : sequences_)
    if (sequence.use_count() == 1) {
      sequence->clear();
      return sequence;
    }
  return sequences_.emplace_back(std::make_shared<Sequence>());
}

Event Queue::submit(const std::shared_ptr<const Sequence>& sequence) {
  constexpr int remembered = 32;  // a queue remembers only what was submitted lately
  Event first, last;
  int pending = 0;
  const auto submitted = [&](Event event) {
    if (!first.queue()) {
      first = std::move(event);
      return;
    }
    last = std::move(event);
    if (++pending < remembered) return;
    first = span(std::move(first), std::move(last));
    last = Event();
    pending = 0;
  };
  for (const Sequence::Step& step : sequence->steps()) {
    if (const auto* const task = std::get_if<HostTask>(&step)) {
      submitted(devices::submit(*this, HostTask([sequence, task] { (*task)(); })));
      continue;
    }
    const auto& launched = std::get<Sequence::Launch>(step);
    std::vector<KernelArgument> arguments;
    for (const Sequence::Argument& argument : sequence->arguments_of(launched)) {
      if (const auto* const buffer = std::get_if<std::shared_ptr<const Buffer>>(&argument.value))
        arguments.emplace_back(buffer->get());
      else if (const auto* const scalar = std::get_if<Scalar>(&argument.value))
        arguments.emplace_back(static_cast<float>(scalar->value()));
      else
        arguments.emplace_back(
            std::span(reinterpret_cast<const float*>(sequence->bytes_of(argument)), argument.bytes / sizeof(float)));
    }
    submitted(launch(launched.program, launched.kernel, launched.grid, arguments));
  }
  if (!first.queue()) throw bad_input("an empty sequence was submitted");
  return last.queue() ? span(std::move(first), std::move(last)) : std::move(first);
}

}  // namespace omniconv::devices
