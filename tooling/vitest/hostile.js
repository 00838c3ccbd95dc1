const nested = (depth) => JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`);

/** Values that a field of a file may have which nobody meant, by what is wrong with them. */
export const hostileValues = {
  null: null,
  "of a wrong type": { a: 1 },
  "an empty list": [],
  "an empty string": "",
  "a number as text": "7",
  true: true,
  "minus five": -5,
  zero: 0,
  "a fraction": 1.5,
  "a billion": 1e9,
  "beyond integers": 2 ** 53,
  "beyond numbers": Number("1e999"),
  "a long string": "long ".repeat(20_000),
  "of two lines": "one\ntwo",
  "deeply nested": nested(1000),
};

/** A configuration with each of its fields missing, and with each of the hostile values. */
export function* hostileFields(config, fields = Object.keys(config)) {
  for (const field of fields) {
    const { [field]: _, ...rest } = config;
    yield { field, kind: "missing", config: rest };
    for (const [kind, value] of Object.entries(hostileValues))
      yield { field, kind, config: { ...config, [field]: value } };
  }
}
