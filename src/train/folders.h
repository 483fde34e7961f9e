// Data sets of images in folders, one for each class.
#pragma once

#include <string>
#include <vector>

#include "omniconv/dataset.h"

namespace omniconv::training {

// Behind the places that were found in the folder: the folder itself, where it has train/CLASS/IMAGE, or, where nothing
// else was found, CLASS/IMAGE; or else those of its folders that have.
void add_folders(const std::string& folder, std::vector<DatasetPlace>& places);

Dataset read_folders(const DatasetPlace& place, std::int64_t train_images, std::int64_t test_images,
                     const ReadingProgress& progress);

}  // namespace omniconv::training
