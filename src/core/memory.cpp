#include "handgrad/core/memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace handgrad {
namespace {

constexpr Index unknown = std::numeric_limits<Index>::max();

// The number in a control file of the kernel; unknown for "max" and for a missing file.
Index number_in(const std::string& path) {
  std::ifstream file(path);
  Index value = 0;
  return file >> value && value >= 0 ? value : unknown;
}

Index free_on_the_machine() {
  std::ifstream file("/proc/meminfo");
  Index bytes = 0;
  bool known = false;
  for (std::string name, unit; file >> name;) {
    Index kilobytes = 0;
    file >> kilobytes;
    std::getline(file, unit);
    if (name == "MemAvailable:") known = true;
    if (name == "MemAvailable:" || name == "SwapFree:") bytes += kilobytes * 1024;
  }
  return known ? bytes : unknown;
}

// The page cache of a group does not count as used: the kernel frees it when memory is short.
Index inactive_file_bytes(const std::string& folder) {
  std::ifstream file(folder + "/memory.stat");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    Index bytes = 0;
    if (words >> name >> bytes && (name == "inactive_file" || name == "total_inactive_file")) return bytes;
  }
  return 0;
}

Index free_in(const std::string& folder, const char* limit_name, const char* usage_name) {
  const Index limit = number_in(folder + limit_name), used = number_in(folder + usage_name);
  if (limit == unknown || used == unknown) return unknown;
  return std::max<Index>(0, limit - std::max<Index>(0, used - inactive_file_bytes(folder)));
}

// The limits of the group of the process and of all its ancestors apply.
Index free_up_the_tree(const std::string& root, std::string group, const char* limit_name, const char* usage_name) {
  Index least = unknown;
  for (;;) {
    least = std::min(least, free_in(root + group, limit_name, usage_name));
    const std::size_t slash = group.find_last_of('/');
    if (group.empty() || slash == std::string::npos) return least;
    group.resize(slash);
  }
}

// Lines of /proc/self/cgroup: "0::/user.slice" (version 2), "9:memory:/docker/..." (version 1).
Index free_in_control_groups() {
  std::ifstream file("/proc/self/cgroup");
  Index least = unknown;
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) {
      least = std::min(least, free_up_the_tree("/sys/fs/cgroup", group, "/memory.max", "/memory.current"));
    } else if (controllers == "memory") {
      least = std::min(
          least, free_up_the_tree("/sys/fs/cgroup/memory", group, "/memory.limit_in_bytes", "/memory.usage_in_bytes"));
    }
  }
  return least;
}

// Pages of the address space (field 0) or of data and stack (field 5).
Index pages_taken(int field) {
  std::ifstream file("/proc/self/statm");
  Index pages = 0;
  for (int i = 0; i <= field; ++i) file >> pages;
  return file ? pages * static_cast<Index>(::sysconf(_SC_PAGESIZE)) : 0;
}

Index free_under(decltype(RLIMIT_AS) resource, int statm_field) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unknown;
  if (limit.rlim_cur > static_cast<rlim_t>(unknown)) return unknown;
  return std::max<Index>(0, static_cast<Index>(limit.rlim_cur) - pages_taken(statm_field));
}

}  // namespace

Index available_memory_bytes() {
  return std::min(
      {free_on_the_machine(), free_in_control_groups(), free_under(RLIMIT_AS, 0), free_under(RLIMIT_DATA, 5)});
}

}  // namespace handgrad
