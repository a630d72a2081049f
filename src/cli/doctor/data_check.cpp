#include "src/cli/doctor/checks.hpp"

#include <arenite/data/dataset.hpp>
#include <arenite/error.hpp>

#include "src/base/installed.hpp"
#include "src/base/sha256.hpp"
#include "src/base/shell_word.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>

namespace arenite::cli::doctor {
namespace {

namespace fs = std::filesystem;

struct Checksum {
  const char* file;
  std::string_view sha256;  ///< of the plain IDX file, as in datasets/fetch
};

constexpr std::array fashion_mnist{
    Checksum{"train-images-idx3-ubyte",
             "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
    Checksum{"train-labels-idx1-ubyte",
             "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
    Checksum{"t10k-images-idx3-ubyte",
             "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    Checksum{"t10k-labels-idx1-ubyte",
             "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"}};

/// Of an IDX file of bytes with these dimensions, which was read already.
std::string idx_sha256(const std::vector<std::int64_t>& dims,
                       std::span<const std::uint8_t> values) {
  std::vector<std::uint8_t> header{0, 0, 8, static_cast<std::uint8_t>(dims.size())};
  for (const std::int64_t dim : dims) {
    for (const int shift : {24, 16, 8, 0})
      header.push_back(static_cast<std::uint8_t>(dim >> shift & 0xff));
  }
  Sha256 hash;
  hash.update(std::as_bytes(std::span(header)));
  hash.update(std::as_bytes(values));
  return hash.hex();
}

/// In the order of the checksums.
std::array<std::string, fashion_mnist.size()> hashes(const data::ImageData& data) {
  const auto images = [](const data::Split& split) {
    return idx_sha256({split.count, split.height, split.width}, split.images);
  };
  const auto labels = [](const data::Split& split) {
    return idx_sha256({split.count}, split.labels);
  };
  return {images(data.train), labels(data.train), images(data.test), labels(data.test)};
}

/// Whether a folder holds any of a set's files; what cannot be looked into may.
bool may_hold_images(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator entries(folder, error);
  if (error) return error != std::errc::no_such_file_or_directory;
  return std::ranges::any_of(entries, [](const fs::directory_entry& entry) {
    return entry.path().filename().string().find("-ubyte") != std::string::npos;
  });
}

/// For a command that may be run in another folder.
fs::path whole(const fs::path& path) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute;
}

/// The command that lets this user read a folder and what is in it; empty where he may.
std::string permission(const fs::path& folder) {
  const auto refused = [](const fs::path& path, int how) {
    return ::access(path.c_str(), how) != 0 && errno == EACCES;
  };
  fs::path above;
  for (const fs::path& name : whole(folder).parent_path()) {
    above /= name;
    if (refused(above, X_OK)) return "chmod a+x " + shell_word(above.string());
  }
  const std::string all = "chmod -R a+rX " + shell_word(whole(folder).string());
  if (refused(folder, R_OK | X_OK)) return all;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (refused(entry.path(), R_OK)) return all;
  }
  return {};
}

/// How to mend what keeps the set in a folder from being read.
std::string mend(const Error& error, const fs::path& folder, const std::string& fetch) {
  if (dynamic_cast<const Failure*>(&error) != nullptr) return error.text().hint;
  if (const std::string command = permission(folder); !command.empty())
    return "let this user read it, as its owner: " + command;
  // What is said of another place is said of where .gz files are unpacked.
  if (!error.text().where.starts_with(folder.string()))
    return "see the check folders: .gz files are unpacked there";
  return fetch;
}

}  // namespace

Finding check_data() {
  constexpr const char* name = "fashion-mnist";
  Finding finding;
  const fs::path folder = data::default_folder(name);
  finding.facts = {{"name", name}, {"folder", folder.string()}, {"found", false}, {"right", false}};
  // There, and not into the cache: what is wrong there would still be the first to be found.
  const std::string fetch =
      by_script("fetch it again", "datasets/fetch",
                fmt::format("--to {} {}", shell_word(whole(folder).string()), name));
  data::ImageData data;
  try {
    data = data::find(name);
  } catch (const Error& error) {
    const ErrorText& text = error.text();
    if (!may_hold_images(folder)) {
      finding.says = "Fashion-MNIST is not on this machine";
      finding.note(text.found, text.hint + "; without it: arenite train --dataset synthetic");
    } else {
      finding.says = fmt::format("Fashion-MNIST in {} cannot be read", folder.string());
      finding.fails(error.what(), mend(error, folder, fetch));
    }
    return finding;
  }
  finding.facts["found"] = true;
  finding.says = fmt::format("Fashion-MNIST in {}, {} training and {} test images", data.origin,
                             data.train.count, data.test.count);
  const auto found = hashes(data);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] == fashion_mnist[i].sha256) continue;
    finding.fails(
        fmt::format("{} holds other data under this name: {} has SHA-256 {}; expected {}",
                    data.origin, fashion_mnist[i].file, found[i], fashion_mnist[i].sha256),
        fetch + "; or name the folder of your own data: arenite train --data FOLDER");
    return finding;
  }
  finding.facts["right"] = true;
  finding.details.emplace_back("the SHA-256 of all four files is right");
  return finding;
}

}  // namespace arenite::cli::doctor
