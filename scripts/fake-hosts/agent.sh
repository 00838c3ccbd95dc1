#!/bin/bash
# The remote shell of Open MPI's launcher (plm_rsh_agent) on fake hosts: agent.sh 10.77.0.2 COMMAND…
# A fake host has its own network, name and /dev/shm, so that ranks of different hosts share no memory.
address=$1
shift
number=${address##*.}
exec ip netns exec "$HALFSTEP_FAKE_HOSTS$number" unshare --uts --mount --ipc /bin/bash -c \
  "hostname $HALFSTEP_FAKE_HOSTS$number; mount -t tmpfs none /dev/shm; $*"
