// Every container format and coding that this kin knows: the one list of them is registry.cpp.
#pragma once

#include "lib/container/container_format.h"

namespace kin::formats {

const Formats& all();

// One per file.
extern const ContainerFormat kAr;
extern const ContainerFormat kBzip2;
extern const ContainerFormat kCpio;
extern const ContainerFormat kGzip;
extern const ContainerFormat kIso;
extern const ContainerFormat kMbox;
extern const ContainerFormat kMime;
extern const ContainerFormat kPdf;
extern const ContainerFormat kPng;
extern const ContainerFormat kTar;
extern const ContainerFormat kXz;
extern const ContainerFormat kZip;

}  // namespace kin::formats
