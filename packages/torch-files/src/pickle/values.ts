/** A name of Python's: a class or a function. It is never looked up. */
export class PickleGlobal {
  readonly module: string;
  readonly name: string;

  constructor(module: string, name: string) {
    this.module = module;
    this.name = name;
  }

  /** "collections.OrderedDict" */
  get path(): string {
    return `${this.module}.${this.name}`;
  }
}

/** What the writer of the pickle keeps elsewhere, by its identifier: torch's storages. */
export class PickleReference {
  readonly id: PickleValue;

  constructor(id: PickleValue) {
    this.id = id;
  }
}

/** A call that Python would make: noted here, never made. */
export class PickleObject {
  readonly callee: PickleValue;
  readonly args: PickleValue;
  /** What Python would hand to `__setstate__`, or write into `__dict__`. */
  state: PickleValue | undefined;
  /** What Python would write into the object as into a dict. */
  entries: Map<PickleValue, PickleValue> | undefined;

  constructor(callee: PickleValue, args: PickleValue) {
    this.callee = callee;
    this.args = args;
  }
}

/** What a pickle holds. Lists and tuples are arrays, dicts are maps. */
export type PickleValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly PickleValue[]
  | Map<PickleValue, PickleValue>
  | Set<PickleValue>
  | PickleGlobal
  | PickleReference
  | PickleObject;

/** Whether a value is a call of one of these names. */
export const isCallOf = (
  value: PickleValue | undefined,
  ...paths: string[]
): value is PickleObject =>
  value instanceof PickleObject &&
  value.callee instanceof PickleGlobal &&
  paths.includes(value.callee.path);
