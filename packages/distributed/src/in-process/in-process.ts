import { requireDeadline, requireOptions } from "../arguments.js";
import type { Carrier } from "../carrier.js";
import { MessageCarrier } from "./message-carrier.js";
import { type Network, promptNetwork } from "./network.js";

/** Options of ranks in one process. */
export interface InProcessOptions {
  /** The host of each rank, as a name. Default: all on one host. */
  readonly hosts?: readonly string[];
  /** Milliseconds within which the other ranks must answer. Default 60 000. */
  readonly deadline?: number;
}

/**
 * Carriers of `size` ranks in this process, for tests: each is driven as if it were a process of its own.
 *
 * @example
 * const ranks = inProcess(2);
 * await Promise.all(ranks.map((carrier) => trainOn(carrier)));
 */
export const inProcess = (size: number, options: InProcessOptions = {}): readonly Carrier[] =>
  carriersOver(promptNetwork(), size, options);

/** The carriers of all ranks over one network. */
export function carriersOver(
  network: Network,
  size: number,
  options: InProcessOptions,
): readonly Carrier[] {
  requireOptions("inProcess(size, { hosts?, deadline? })", options, ["hosts", "deadline"]);
  const { hosts = Array.from({ length: size }, () => "host"), deadline = 60_000 } = options;
  requireDeadline(deadline);
  if (!Number.isSafeInteger(size) || size < 1)
    throw new RangeError(`size is ${size}: it must be a whole number from 1 on`);
  if (hosts.length !== size)
    throw new RangeError(`hosts names ${hosts.length} hosts: give one for each of ${size} ranks`);
  const carriers: MessageCarrier[] = Array.from(
    { length: size },
    (_, rank) =>
      new MessageCarrier(rank, { network, hostNames: hosts, deadline }, (message) =>
        carriers[message.to]?.accept(message),
      ),
  );
  return carriers;
}
