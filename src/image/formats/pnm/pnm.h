// The Netpbm formats: PBM, PGM, PPM (plain and raw), PAM, and PFM beside them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "image/image.h"
#include "image/input_file.h"

namespace omniconv::image {

// Keeps a PAM file's own name for what its channels are.
class PamMetadata final : public Metadata {
 public:
  explicit PamMetadata(std::string tuple_type) : tuple_type_(std::move(tuple_type)) {}
  const std::string& tuple_type() const { return tuple_type_; }

 private:
  std::string tuple_type_;
};

bool is_pnm(std::span<const std::byte> content);
// Bits of PBM become u8, 0 for black and 255 for white. A plain or float file holds one image, the others any number.
std::unique_ptr<ImageReader> open_pnm(std::shared_ptr<const InputFile> file, int page);
int count_images_of_pnm(const InputFile& file);

// `extension` is one of these, without its dot.
bool is_pnm_extension(std::string_view extension);
std::unique_ptr<ImageWriter> create_pnm(const std::string& path, std::string_view extension, const ImageInfo& like);

}  // namespace omniconv::image
