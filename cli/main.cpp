#include "command.h"

int main(int argc, char** argv) {
  return omniconv::cli::run_command(argc, argv);
}
