// Renders openapi.json, which lies beside this page, as a reference. Everything is built from text nodes, so nothing in
// the description can become markup.
"use strict";

const make = (tag, attributes = {}, ...children) => {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...children.filter((child) => child !== undefined && child !== ""));
  return node;
};

// It may scroll, so keys can reach it.
const sample = (text) => make("pre", { tabIndex: 0 }, text);

const row = (name, ...rest) => make("tr", {}, make("td", {}, name), make("td", {}, ...rest));
const table = (rows) => make("table", {}, make("tbody", {}, ...rows));

const either = (schemas) => make("span", {}, ...schemas.flatMap((s, i) => (i ? [" or ", shown(s)] : [shown(s)])));

const values = (list) => {
  const names = list.map((value) => JSON.stringify(value));
  if (names.length <= 3) return make("code", {}, names.join(" "));
  return make("details", {}, make("summary", {}, `one of ${names.length}`), make("code", {}, names.join(" ")));
};

const shown = (schema) => {
  if (!schema) return "";
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return make("a", { href: "#schema-" + name }, name);
  }
  if (schema.title) return schema.title;
  const variants = schema.oneOf || schema.anyOf;
  if (variants) return either(variants);
  if (schema.enum) return values(schema.enum);
  if (schema.type === "array") return make("span", {}, "list of ", shown(schema.items));
  if (schema.pattern) return make("span", {}, "string like ", make("code", { className: "faint" }, schema.pattern));
  return [schema.type].flat().join(" or ") || "any";
};

const field = (name, schema, required, description) =>
  row(
    make("code", {}, name),
    shown(schema),
    required ? "" : make("span", { className: "faint" }, " optional"),
    make("div", {}, description || schema?.description || ""),
  );

const contents = (content = {}) =>
  Object.entries(content).flatMap(([type, media], i) => [
    i ? make("br") : "",
    make("code", { className: "faint" }, type),
    " ",
    shown(media.schema),
  ]);

const operation = (path, verb, op) => {
  const node = make(
    "section",
    { id: op.operationId },
    make("h3", {}, op.summary || op.operationId),
    make("div", { className: "path" }, make("span", { className: "verb " + verb }, verb.toUpperCase()), path),
    make("p", {}, op.description || ""),
  );
  if (op.parameters?.length) {
    node.append(make("h4", {}, "Parameters"));
    node.append(table(op.parameters.map((p) => field(`${p.name} (${p.in})`, p.schema, p.required, p.description))));
  }
  if (op.requestBody) {
    node.append(make("h4", {}, "Body"), make("div", {}, ...contents(op.requestBody.content)));
    for (const media of Object.values(op.requestBody.content)) {
      if (media.example !== undefined) node.append(sample(JSON.stringify(media.example, null, 2)));
    }
  }
  const answers = Object.entries(op.responses || {});
  node.append(make("h4", {}, "Responses"));
  node.append(table(answers.map(([status, r]) => row(status, r.description, " ", ...contents(r.content)))));
  for (const [, response] of answers) {
    for (const media of Object.values(response.content || {})) {
      if (media.example === undefined) continue;
      const text = typeof media.example === "string" ? media.example : JSON.stringify(media.example, null, 2);
      node.append(sample(text));
    }
  }
  return node;
};

const schemaSection = (name, schema) => {
  const node = make("section", { id: "schema-" + name }, make("h3", {}, name), make("p", {}, schema.description || ""));
  if (schema.oneOf) node.append(make("p", {}, "One of ", shown(schema)));
  const required = new Set(schema.required || []);
  const fields = Object.entries(schema.properties || {});
  if (fields.length) node.append(table(fields.map(([key, value]) => field(key, value, required.has(key)))));
  return node;
};

const render = (doc) => {
  const nav = document.getElementById("contents");
  const main = document.getElementById("reference");
  const lines = (doc.info.description || "").split("\n\n");
  main.replaceChildren(
    make("h1", {}, doc.info.title, " ", make("small", { className: "faint" }, doc.info.version)),
    ...lines.map((line) => make("p", {}, line)),
    make("p", {}, make("a", { href: "openapi.json" }, "openapi.json")),
  );
  for (const tag of doc.tags || []) {
    nav.append(make("h2", {}, tag.name));
    main.append(make("h2", {}, tag.name), make("p", {}, tag.description || ""));
    for (const [path, item] of Object.entries(doc.paths)) {
      for (const [verb, op] of Object.entries(item)) {
        if (!op.tags?.includes(tag.name)) continue;
        nav.append(make("a", { href: "#" + op.operationId }, op.summary || op.operationId));
        main.append(operation(path, verb, op));
      }
    }
  }
  nav.append(make("h2", {}, "Reference"), make("a", { href: "#problems" }, "Problems"), make("a", { href: "#schemas" }, "Schemas"));
  const codes = Object.entries(doc.components.schemas.Problem?.["x-codes"] || {});
  main.append(
    make("h2", { id: "problems" }, "Problems"),
    table(codes.map(([code, meaning]) => Object.assign(row(make("code", {}, code), meaning), { id: code }))),
    make("h2", { id: "schemas" }, "Schemas"),
    ...Object.entries(doc.components.schemas).map(([name, schema]) => schemaSection(name, schema)),
  );
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
};

fetch("openapi.json")
  .then((response) => response.json())
  .then(render)
  .catch((reason) => {
    document.getElementById("reference").replaceChildren("The description could not be loaded: " + reason);
  });
