/** Invalid values of a field of a file, by their mistake. */
export declare const hostileValues: Readonly<Record<string, unknown>>;

export interface HostileFields {
  readonly field: string;
  /** The mistake: "missing", or a name of {@link hostileValues}. */
  readonly kind: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** A configuration with each of its fields (default: all) missing, and with each of the hostile values. */
export declare const hostileFields: (
  config: Readonly<Record<string, unknown>>,
  fields?: readonly string[],
) => Generator<HostileFields>;

/**
 * A configuration with each field of it, and of the objects in it, missing, and with each of the hostile values. Of a list the first is
 * looked into.
 */
export declare const hostileTrees: (
  config: Readonly<Record<string, unknown>>,
) => Generator<HostileFields>;

/** As JSON, but for numbers beyond all, which JSON writes as null and may be read as they are. */
export declare const hostileJson: (value: unknown) => string;

/**
 * What opening something comes to: "opened", or the line of a refusal with exit code 2.
 * @param exitCodeOf that of `@halfstep/trainer/cli`
 * @throws Error for every other end
 */
export declare const opening: (
  open: () => unknown,
  exitCodeOf: (error: unknown) => number,
) => Promise<string>;

/** Does something while a file has another content. */
export declare const withContent: <T>(
  path: string,
  content: string | Uint8Array,
  use: () => T,
) => Promise<Awaited<T>>;
