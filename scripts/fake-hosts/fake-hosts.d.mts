/** Hosts that are network namespaces of this machine. They are counted from 1. */
export interface FakeHosts {
  /** The arguments of Open MPI's launcher by which it starts ranks on the hosts. */
  readonly launch: readonly string[];
  /** Variables of the launcher. */
  readonly env: Readonly<Record<string, string>>;
  /** Sets the rate of every link in each direction; undefined: none. */
  setRate(megabits: number | undefined): void;
  /** Takes the link of a host down. */
  cut(host: number): void;
  /** The bytes that a host has sent, by the counter of its link. */
  sentBytes(host: number): number;
  /** Removes the hosts. */
  close(): void;
}

export declare function fakeHosts(
  count: number,
  options?: { readonly ranks?: number; readonly megabits?: number },
): FakeHosts;
