const word = /[a-z0-9']+/gi;

/**
 * The words of a text, in lower case: runs of letters, digits and apostrophes. A naive Bayes classifier counts these.
 */
export const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(word) ?? [];

/** A text up to the end of its word number `count`, with one blank wherever there was white space. */
export function firstWords(text: string, count: number): string {
  let end = 0;
  let seen = 0;
  for (const match of text.matchAll(word)) {
    end = match.index + match[0].length;
    if (++seen === count) return squeezed(text.slice(0, end));
  }
  return squeezed(text);
}

const squeezed = (text: string): string => text.trim().replace(/\s+/g, " ");
