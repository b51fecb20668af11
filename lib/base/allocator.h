// How kin's programs want memory handed out.
#pragma once

namespace kin {

// Once, before the first thread. Many threads pass large buffers to each other. With an arena each, what one
// frees is of no use to the others; and a buffer that goes back to the system with every block comes back as
// fresh pages. If all buffers do, that costs a tenth of a backup's time; if none does, the holes that the
// largest leave (groups, segments of large files) cost 15 MiB. So those go back, and others do not.
void set_up_allocator();

}  // namespace kin
