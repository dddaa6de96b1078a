package cron

// readQuartz reads six or seven fields.
func (x *Expression) readQuartz(text string, words []word) (err error) {
	if x.seconds, err = readField(text, words[0], &secondField); err != nil {
		return err
	}
	if err = x.readClock(text, words[1], words[2]); err != nil {
		return err
	}
	if x.days.byDate, err = x.days.readDates(readerOf(text, words[3], &dateField)); err != nil {
		return err
	}
	if x.months, err = readField(text, words[4], &monthField); err != nil {
		return err
	}
	if x.days.byWeekday, err = x.days.readWeekdays(readerOf(text, words[5], &weekdayField)); err != nil {
		return err
	}
	if x.days.byDate == x.days.byWeekday {
		return refuse(text, words[5].offset, `one of the two day fields must be "?", and only one: the third or this`)
	}
	if len(words) == 6 {
		x.years = everyYear()
		return nil
	}
	x.years, err = readerOf(text, words[6], &yearField).values()
	return err
}

// readField reads a field whose values fit into one word.
func readField(text string, w word, f *field) (uint64, error) {
	found, err := readerOf(text, w, f).values()
	return found[0], err
}

func (x *Expression) readClock(text string, minutes, hours word) (err error) {
	if x.minutes, err = readField(text, minutes, &minuteField); err != nil {
		return err
	}
	x.hours, err = readField(text, hours, &hourField)
	return err
}

func everyYear() set {
	var all set
	yearField.fill(&all, firstYear, lastYear, 1)
	return all
}

// unspecified reports whether the field is "?", and if so moves behind it.
func (r *reader) unspecified() bool { return r.end-r.pos == 1 && r.take('?') }

// readDates reads the days of the month, and reports whether they are specified.
func (d *days) readDates(r *reader) (bool, error) {
	if r.unspecified() {
		return false, nil
	}
	var plain set
	err := r.list(func() error { return d.readDate(r, &plain) })
	d.dates = uint32(plain[0]) << 1
	return true, err
}

// readDate reads an item: L, L-n, LW, L-nW, nW, or a plain one.
func (d *days) readDate(r *reader, plain *set) error {
	if r.take('L') {
		return d.readLast(r)
	}
	begin := r.pos
	if isDigit(r.peek()) {
		n, err := r.value()
		if err != nil {
			return err
		}
		if r.take('W') {
			d.nearest |= 1 << n
			return r.single("nW")
		}
		r.pos = begin
	}
	if err := r.item(plain); err != nil {
		return err
	}
	if c := r.peek(); c == 'W' || c == 'L' {
		return r.refuse(r.pos, "%c goes with a single day of the month, as in 15W, LW, L or L-3", c)
	}
	return nil
}

// readLast reads what follows an L in the days of the month.
func (d *days) readLast(r *reader) error {
	n := 0
	if r.take('-') {
		begin := r.pos
		var err error
		if n, err = r.number(); err != nil {
			return err
		}
		if n > 30 {
			return r.refuse(begin, "days before the last go from 0 to 30")
		}
	}
	if r.take('W') {
		d.nearestFrom |= 1 << n
		return r.single("LW")
	}
	d.fromEnd |= 1 << n
	return r.single("L")
}

// single refuses a range or a step after an item that means a single day.
func (r *reader) single(form string) error {
	if c := r.peek(); c == '-' || c == '/' {
		return r.refuse(r.pos, "%s takes neither a range nor a step", form)
	}
	return nil
}

// readWeekdays reads the days of the week, and reports whether they are specified.
func (d *days) readWeekdays(r *reader) (bool, error) {
	if r.unspecified() {
		return false, nil
	}
	var plain set
	err := r.list(func() error { return d.readWeekday(r, &plain) })
	d.weekdays = uint8(plain[0])
	return true, err
}

// readWeekday reads an item: L (which is Saturday), nL, n#m, or a plain one.
func (d *days) readWeekday(r *reader, plain *set) error {
	if r.take('L') {
		plain.add(weekdayField.max - weekdayField.min)
		return r.single("L")
	}
	begin := r.pos
	if c := r.peek(); isDigit(c) || isLetter(c) {
		n, err := r.value()
		if err != nil {
			return err
		}
		if r.take('L') {
			d.lastWeekdays |= 1 << (n - 1)
			return r.single("nL")
		}
		if r.take('#') {
			return d.readNth(r, n-1)
		}
		r.pos = begin
	}
	if err := r.item(plain); err != nil {
		return err
	}
	if c := r.peek(); c == 'L' || c == '#' {
		return r.refuse(r.pos, "%c goes with a single day of the week, as in 6L or 6#3", c)
	}
	return nil
}

// readNth reads what follows the "#".
func (d *days) readNth(r *reader, weekday int) error {
	begin := r.pos
	n, err := r.number()
	if err != nil {
		return err
	}
	if n < 1 || n > len(d.nthWeekdays) {
		return r.refuse(begin, "a month has a first to a fifth of each weekday")
	}
	d.nthWeekdays[n-1] |= 1 << weekday
	return r.single("n#m")
}
