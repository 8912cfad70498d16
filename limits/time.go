package limits

import "time"

// Time is a moment in microseconds since the Unix epoch, read from a clock that
// does not step while the process runs. The zero Time means "none" wherever a
// moment is optional; Never is later than every moment.
type Time int64

// Never is the moment that does not come.
const Never Time = 1<<63 - 1

// Add returns the moment d after t, at most Never; parts of a microsecond count
// as a whole one, so that nothing is early.
func (t Time) Add(d time.Duration) Time {
	us := Time(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		us++
	}
	if us > 0 && t > Never-us {
		return Never
	}
	return t + us
}

// Sub returns the span from u to t, at most the largest Duration.
func (t Time) Sub(u Time) time.Duration {
	const most = int64(1<<63-1) / int64(time.Microsecond)
	return time.Duration(min(max(int64(t-u), -most), most)) * time.Microsecond
}

// Wall returns t as a time of day in UTC.
func (t Time) Wall() time.Time { return time.UnixMicro(int64(t)).UTC() }

// TimeOf returns the first moment that is not before t.
func TimeOf(t time.Time) Time {
	us := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		us++
	}
	return Time(us)
}
