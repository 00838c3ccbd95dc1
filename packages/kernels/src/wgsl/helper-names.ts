/** Comments, and what stands between braces that hold no others. */
const comments = /\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
const innermostBlock = /\{[^{}]*\}/g;

const declaration = /\b(?:fn|const|override|alias|struct|var(?:<[^>]*>)?)\s+([A-Za-z_]\w*)/g;

/** The names that WGSL declares in module scope. */
function declaredNames(code: string): readonly string[] {
  let outside = code.replace(comments, "");
  for (let before = ""; before !== outside; ) {
    before = outside;
    outside = outside.replace(innermostBlock, "");
  }
  return [...outside.matchAll(declaration)].map(([, name]) => name as string);
}

/**
 * Renames what some WGSL functions declare by a prefix, in their code and in the code that calls them: authors of expressions choose
 * their names freely, and two of them meet in one program.
 */
export function withPrefix(functions: string, prefix: string): (code: string) => string {
  const names = declaredNames(functions);
  if (names.length === 0) return (code) => code;
  // Members of structs, which follow a dot, are another namespace.
  const use = new RegExp(`(?<![\\w.])(?:${names.join("|")})\\b`, "g");
  return (code) => code.replace(use, (name) => prefix + name);
}
