/**
 * @throws RangeError unless `send` has equal chunks for all members and `receive` is as long
 */
export function requireChunks(send: Uint8Array, receive: Uint8Array, members: number): void {
  if (send.length % members !== 0 || receive.length !== send.length)
    throw new RangeError(
      `allToAll: send has ${send.length} bytes and receive ${receive.length}: both must be as long, in ${members} equal chunks`,
    );
}

/**
 * @throws RangeError unless `receive` has room for the bytes of all members
 */
export function requireRoom(send: Uint8Array, receive: Uint8Array, members: number): void {
  if (receive.length !== send.length * members)
    throw new RangeError(
      `allGather: receive has ${receive.length} bytes: it must have those of ${members} ranks, ${send.length} each`,
    );
}
