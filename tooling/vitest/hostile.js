import { readFileSync, writeFileSync } from "node:fs";

const nested = (depth) => JSON.parse(`${"[".repeat(depth)}${"]".repeat(depth)}`);

/** Invalid values of a field of a file, by their mistake. */
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

const isObject = (value) => value != null && Object.getPrototypeOf(value) === Object.prototype;

/**
 * A configuration with each field of it, and of the objects in it, missing, and with each of the hostile values. Of a list the first is
 * looked into.
 */
export function* hostileTrees(config) {
  for (const [field, inner] of Object.entries(config)) {
    yield* hostileFields(config, [field]);
    const isList = Array.isArray(inner);
    const looked = isList ? inner[0] : inner;
    if (!isObject(looked)) continue;
    for (const each of hostileTrees(looked))
      yield {
        ...each,
        field: `${field}.${isList ? "0." : ""}${each.field}`,
        config: { ...config, [field]: isList ? [each.config, ...inner.slice(1)] : each.config },
      };
  }
}

/** As JSON, but for numbers beyond all, which JSON writes as null and may be read as they are. */
export const hostileJson = (value) =>
  JSON.stringify(value, (_, each) => (each === Number.POSITIVE_INFINITY ? "∞" : each)).replaceAll(
    '"∞"',
    "1e999",
  );

/** What opening something comes to: "opened", or the line of a refusal with exit code 2. Others are errors of the test. */
export async function opening(open, exitCodeOf) {
  try {
    await open();
    return "opened";
  } catch (error) {
    const { message } = error;
    const code = exitCodeOf(error);
    if (code === 2 && !message.includes("\n") && message.length < 1000) return message;
    throw new Error(
      `a refusal in ${message.length} characters with exit code ${code}: ${error.stack}`,
    );
  }
}

/** Does something while a file has another content. */
export async function withContent(path, content, use) {
  const before = readFileSync(path);
  writeFileSync(path, content);
  try {
    return await use();
  } finally {
    writeFileSync(path, before);
  }
}

/** A configuration with each of its fields missing, and with each of the hostile values. */
export function* hostileFields(config, fields = Object.keys(config)) {
  for (const field of fields) {
    const { [field]: _, ...rest } = config;
    yield { field, kind: "missing", config: rest };
    for (const [kind, value] of Object.entries(hostileValues))
      yield { field, kind, config: { ...config, [field]: value } };
  }
}
