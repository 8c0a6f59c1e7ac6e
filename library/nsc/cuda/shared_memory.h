// The block's memory, as much as the launch asks for.
#pragma once

extern __shared__ __align__(16) unsigned char shared_memory[];
