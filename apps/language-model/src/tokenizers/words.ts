/** GPT-2's words: the space before a word belongs to it, and no token reaches over the end of one. */
const pattern = /'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+/gu;

/** Divides a text into words, without omissions. */
export function* wordsOf(text: string): Generator<string> {
  for (const [word] of text.matchAll(pattern)) yield word;
}
