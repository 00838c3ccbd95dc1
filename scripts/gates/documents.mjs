import ts from "typescript";

/** The text with its fenced blocks blanked, so that line numbers stay. */
const withoutBlocks = (markdown) =>
  markdown.replace(/^( *)```.*?^\1```$/gms, (block) => block.replace(/[^\n]/g, ""));

const lineOf = (text, index) => text.slice(0, index).split("\n").length;

const matchesOf = (text, pattern) =>
  [...text.matchAll(pattern)].map((match) => ({ match, line: lineOf(text, match.index) }));

/**
 * Links and images that stay in the repository: `{ line, path, heading }` of `[…](path#heading)`.
 * @param {string} markdown
 */
export const linksOf = (markdown) =>
  matchesOf(withoutBlocks(markdown), /\]\(([^)\s]+)\)/g)
    .filter(({ match }) => !/^[a-z]+:/.test(match[1]))
    .map(({ match, line }) => {
      const [path, heading] = match[1].split("#");
      return { line, path, heading };
    });

/**
 * Code spans that name files or folders of the repository: sources by their suffix, anything below its top folders.
 * Names in capitals (`apps/APP/src`) stand for others, and so do patterns.
 * @param {string} markdown
 */
export const pathsOf = (markdown) =>
  matchesOf(withoutBlocks(markdown), /`([\w./-]+)`/g)
    .map(({ match, line }) => ({ line, path: match[1].replace(/\/$/, "") }))
    .filter(
      ({ path }) =>
        /\w\.(ts|mjs|cjs|wgsl)$|^(packages|apps|docs|scripts|tooling|\.ci|src|test)\/\w/.test(
          path,
        ) && !path.split("/").some((part) => /^[A-Z]+\b/.test(part) && !part.endsWith(".md")),
    );

/**
 * Scripts that are called by npm, in text and in blocks: `{ line, script, workspace }`.
 * @param {string} markdown
 */
export const scriptsOf = (markdown) =>
  matchesOf(
    markdown,
    /\bnpm (?:run (?:--silent )?([a-z][\w:-]*)|(start|test))(?: -w ([\w@/-]+))?/g,
  ).map(({ match: [, script, short, workspace], line }) => ({
    line,
    script: script ?? short,
    workspace,
  }));

/** GitHub's anchors of the headings of a text. */
export const headingsOf = (markdown) =>
  matchesOf(withoutBlocks(markdown), /^#+ (.+)$/gm).map(({ match }) =>
    match[1]
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replace(/\s/g, "-"),
  );

/** Does a tracked path have these last parts? */
export const isKnown = (path, known) =>
  known.has(path) || [...known].some((each) => each.endsWith(`/${path}`));

/**
 * Names of the values (no types) that a module exports, those of `export *` included.
 * @param {string} file
 * @param {(file: string) => string} read
 * @returns {string[]}
 */
export const exportedValues = (file, read) =>
  ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest).statements.flatMap((statement) => {
    if (ts.isExportDeclaration(statement)) {
      if (statement.isTypeOnly) return [];
      if (statement.exportClause === undefined)
        return exportedValues(resolved(file, statement.moduleSpecifier.text), read);
      if (ts.isNamespaceExport(statement.exportClause)) return [statement.exportClause.name.text];
      return statement.exportClause.elements
        .filter((element) => !element.isTypeOnly)
        .map((element) => element.name.text);
    }
    const isExported = statement.modifiers?.some(
      ({ kind }) => kind === ts.SyntaxKind.ExportKeyword,
    );
    if (!isExported) return [];
    if (ts.isVariableStatement(statement))
      return statement.declarationList.declarations.map(({ name }) => name.text);
    return ts.isFunctionDeclaration(statement) || ts.isClassDeclaration(statement)
      ? [statement.name.text]
      : [];
  });

const resolved = (file, specifier) =>
  new URL(specifier.replace(/\.js$/, ".ts"), `file://${file}`).pathname;

/** Whether a comment with a text stands before a statement. */
const isDocumented = (statement) =>
  (statement.jsDoc ?? []).some(({ comment }) => comment !== undefined && comment.length > 0);

const namesDeclaredBy = (statement) =>
  ts.isVariableStatement(statement)
    ? statement.declarationList.declarations.map(({ name }) => name.text)
    : statement.name === undefined
      ? []
      : [statement.name.text];

/**
 * The exports of a module, values and types, and whether each has a docstring at its declaration. Exports from other packages are
 * documented there.
 * @param {string} file
 * @param {(file: string) => string} read
 * @returns {Map<string, boolean>}
 */
export const documentedExports = (file, read) => {
  const { statements } = ts.createSourceFile(file, read(file), ts.ScriptTarget.Latest);
  const declared = new Map();
  for (const statement of statements)
    for (const name of namesDeclaredBy(statement))
      declared.set(name, (declared.get(name) ?? false) || isDocumented(statement));
  const found = new Map();
  for (const statement of statements) {
    if (!ts.isExportDeclaration(statement)) {
      const isExported = statement.modifiers?.some(
        ({ kind }) => kind === ts.SyntaxKind.ExportKeyword,
      );
      if (isExported)
        for (const name of namesDeclaredBy(statement)) found.set(name, declared.get(name));
      continue;
    }
    const { exportClause, moduleSpecifier } = statement;
    if (moduleSpecifier && !moduleSpecifier.text.startsWith(".")) continue;
    const source = moduleSpecifier
      ? documentedExports(resolved(file, moduleSpecifier.text), read)
      : declared;
    if (exportClause === undefined) for (const [name, has] of source) found.set(name, has);
    else if (ts.isNamedExports(exportClause))
      for (const { name, propertyName } of exportClause.elements)
        found.set(name.text, source.get((propertyName ?? name).text) ?? true);
    else for (const [name, has] of source) found.set(`${exportClause.name.text}.${name}`, has);
  }
  return found;
};

/** The names that do not occur as words in the text. */
export const unmentioned = (names, text) => {
  const words = new Set(text.match(/\w+/g));
  return names.filter((name) => !words.has(name));
};

/**
 * Links of comments, `{@link name}`, to names that the file does not declare or import: `{ line, name }`. Editors cannot resolve
 * them.
 * @param {string} source
 */
export const deadLinksOf = (source) => {
  const names = new Set(source.replace(/\/\*\*.*?\*\//gs, "").match(/\w+/g));
  return matchesOf(source, /\{@link (\w+)/g)
    .map(({ match, line }) => ({ line, name: match[1] }))
    .filter(({ name }) => !names.has(name));
};
