// How kin's programs want memory handed out.
#pragma once

namespace kin {

// Once, before the first thread. Many threads pass large buffers to each other. With an arena each, what one
// frees is of no use to the others; and a buffer that goes back to the system with every block comes back as
// fresh pages, which cost a tenth of a backup's time.
void set_up_allocator();

}  // namespace kin
