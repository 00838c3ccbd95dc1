// `node scripts/site/api.mjs FOLDER`: the API reference, of every entry of every public package, in one TypeScript program.
import { fileURLToPath } from "node:url";
import { Application, Converter, JSX, LogLevel, ReflectionKind, TSConfigReader } from "typedoc";
import { publicPackages } from "../gates/packages.mjs";
import { showCallables } from "./callables.mjs";
import { packageEntries } from "./entries.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const entries = packageEntries(publicPackages(root));

const app = await Application.bootstrapWithPlugins(
  {
    name: "Halfstep API",
    entryPoints: entries.map(({ source }) => source),
    tsconfig: fileURLToPath(new URL("tsconfig.json", import.meta.url)),
    // The gate `typecheck` has checked the sources.
    skipErrorChecking: true,
    excludeInternal: true,
    // The site has no sources to link to.
    disableSources: true,
    excludeExternals: true,
    hideGenerator: true,
    // Types that signatures name and that packages do not export have pages, too.
    plugin: ["typedoc-plugin-missing-exports"],
    internalModule: "Types of signatures",
    groupOrder: ["Functions", "Ops", "Classes", "Variables", "*"],
    includeHierarchySummary: false,
    markdownItOptions: { html: true, linkify: false },
    readme: "none",
    validation: { notExported: true, invalidLink: true, notDocumented: false },
    treatWarningsAsErrors: true,
    logLevel: LogLevel.Warn,
  },
  [new TSConfigReader()],
);

showCallables(app);
app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
  for (const module of project.children ?? []) {
    const { packageName, packagePath } = project.getSymbolIdFromReflection(module);
    const source = entries.find(
      ({ name, source }) =>
        `${name}/`.startsWith(`${packageName}/`) && source.endsWith(`/${packagePath}`),
    );
    module.name = source.name;
    // The plugin also collects accessors that other types inherit, which have no page.
    for (const { children } of module.getChildrenByKind(ReflectionKind.Module))
      for (const accessor of children?.filter(({ kind }) => kind === ReflectionKind.Accessor) ?? [])
        project.removeReflection(accessor);
  }
});
app.renderer.hooks.on("pageSidebar.begin", ({ relativeURL }) =>
  JSX.createElement(
    "p",
    null,
    JSX.createElement("a", { href: relativeURL("../index.html") }, "Halfstep: guide"),
  ),
);

const project = await app.convert();
if (project !== undefined) {
  app.validate(project);
  await app.generateDocs(project, process.argv[2]);
}
process.exitCode =
  project === undefined || app.logger.hasErrors() || app.logger.hasWarnings() ? 1 : 0;
