/** Comments, and innermost pairs of braces with their contents. */
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
 * Adds a prefix to the names that some WGSL functions declare, in their code and in the code that calls them: authors of expressions
 * choose names freely, and one program may contain two equal names.
 */
export function withPrefix(functions: string, prefix: string): (code: string) => string {
  const names = declaredNames(functions);
  if (names.length === 0) return (code) => code;
  // Members of structs, which follow a dot, are another namespace.
  const use = new RegExp(`(?<![\\w.])(?:${names.join("|")})\\b`, "g");
  return (code) => code.replace(use, (name) => prefix + name);
}
