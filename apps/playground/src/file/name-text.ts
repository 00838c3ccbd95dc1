/** Most characters of a tensor's name in a row. */
const mostCharacters = 120;
const endCharacters = 40;

/** Characters that are not seen, or that change the order of others: controls, and marks of the direction of writing. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: names of strangers have them
const unseen = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A tensor's name for reading: what is unseen is written as an escape, and the middle of a long one is left out. */
export function nameText(name: string): string {
  if (name === "") return "(no name)";
  const short =
    name.length > mostCharacters
      ? `${name.slice(0, mostCharacters - endCharacters)}…${name.slice(-endCharacters)}`
      : name;
  return short.replace(
    unseen,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
