// Owns making form fields of a tool's input schema and reading them back: strings, numbers, booleans and enums
// get a field of their own, anything else a field for JSON. No validation: what is wrong, the call says.

const typeOf = (schema) => (Array.isArray(schema.enum) ? 'enum' : schema.type);

function makeControl(schema, required) {
  const type = typeOf(schema);
  if (type === 'enum') {
    const select = document.createElement('select');
    if (!required) select.append(new Option('(leave out)', ''));
    select.append(...schema.enum.map((value) => new Option(String(value), JSON.stringify(value))));
    if (schema.default !== undefined) select.value = JSON.stringify(schema.default);
    return select;
  }
  const oneLine = type === 'string' || type === 'number' || type === 'integer' || type === 'boolean';
  const control = document.createElement(oneLine ? 'input' : 'textarea');
  if (type === 'boolean') {
    control.type = 'checkbox';
    control.checked = schema.default === true;
    return control;
  }
  if (type === 'number' || type === 'integer') {
    control.type = 'number';
    control.step = type === 'integer' ? '1' : 'any';
    if (schema.minimum !== undefined) control.min = schema.minimum;
    if (schema.maximum !== undefined) control.max = schema.maximum;
  }
  if (schema.default !== undefined)
    control.value = type === 'string' ? schema.default : JSON.stringify(schema.default);
  return control;
}

/** The value of one field, or undefined to leave it out. An empty text is sent only where one is required. */
function readControl(control, schema, required) {
  const type = typeOf(schema);
  if (type === 'boolean') return control.checked || required ? control.checked : undefined;
  if (type === 'string') return control.value === '' && !required ? undefined : control.value;
  if (control.value === '') return undefined;
  if (type === 'number' || type === 'integer') return Number(control.value);
  return JSON.parse(control.value);
}

/** Fills `place` with fields for `schema` and gives a function that reads them. */
export function showFields(place, schema) {
  const required = new Set(schema?.required ?? []);
  const fields = Object.entries(schema?.properties ?? {}).map(([name, property], index) => {
    const control = makeControl(property, required.has(name));
    control.name = name;
    const label = document.createElement('label');
    const caption = `${property.title ?? name}${required.has(name) ? '' : ' (optional)'}`;
    if (control.type === 'checkbox') {
      label.className = 'check';
      label.append(control, ` ${caption}`);
    } else label.append(caption, ' ', control);
    const about = document.createElement('small');
    about.id = `about-${index}`;
    about.textContent = property.description ?? '';
    control.setAttribute('aria-describedby', about.id);
    return { name, property, control, nodes: [label, about] };
  });
  place.replaceChildren(...fields.flatMap((field) => field.nodes));
  if (fields.length === 0) place.textContent = 'It takes none.';

  return () => {
    const input = {};
    for (const { name, property, control } of fields) {
      const value = readControl(control, property, required.has(name));
      if (value !== undefined) input[name] = value;
    }
    return input;
  };
}
