/** Values that a field of a file may have which nobody meant, by what is wrong with them. */
export declare const hostileValues: Readonly<Record<string, unknown>>;

export interface HostileFields {
  readonly field: string;
  /** What is wrong with it: "missing", or a name of {@link hostileValues}. */
  readonly kind: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** A configuration with each of its fields (default: all) missing, and with each of the hostile values. */
export declare const hostileFields: (
  config: Readonly<Record<string, unknown>>,
  fields?: readonly string[],
) => Generator<HostileFields>;
