/**
 * Declarations without the functions that neither the rest of a module nor another used function names. Declarations are such as this
 * library generates: each function begins a line with `fn`, and no comment has a brace. Everything else in them stays.
 */
export function usedDeclarations(declarations: string, rest: string): string {
  const parts = partsOf(declarations);
  const functions = new Map<string, string>();
  for (const { name, text } of parts) if (name !== undefined) functions.set(name, text);
  const used = new Set<string>();
  const waiting = [rest, ...parts.filter(({ name }) => name === undefined).map(({ text }) => text)];
  for (let text = waiting.pop(); text !== undefined; text = waiting.pop())
    for (const [word] of text.matchAll(/\w+/g)) {
      const named = functions.get(word);
      if (named === undefined || used.has(word)) continue;
      used.add(word);
      waiting.push(named);
    }
  return parts
    .filter(({ name }) => name === undefined || used.has(name))
    .map(({ text }) => text)
    .join("");
}

interface Part {
  /** Of a function. */
  readonly name?: string;
  readonly text: string;
}

/** Functions, and what lies between them. */
function partsOf(declarations: string): readonly Part[] {
  const parts: Part[] = [];
  let end = 0;
  for (const found of declarations.matchAll(/^fn (\w+)\(/gm)) {
    const between = declarations.slice(end, found.index);
    if (between.trim() !== "") parts.push({ text: between });
    end = endOfBlock(declarations, found.index);
    // The line's end belongs to the function.
    if (declarations[end] === "\n") end++;
    parts.push({ name: found[1] as string, text: declarations.slice(found.index, end) });
  }
  parts.push({ text: declarations.slice(end) });
  return parts;
}

/** The position behind the first block in braces from `start` on. */
function endOfBlock(text: string, start: number): number {
  let depth = 0;
  for (let at = text.indexOf("{", start); at < text.length; at++) {
    if (text[at] === "{") depth++;
    if (text[at] === "}" && --depth === 0) return at + 1;
  }
  return text.length;
}
